"""The terms of a model's largest sum, operator by operator, and what they do to a verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everyone calls it

import dy2st
from dy2st.parity.checking import compare_stages
from dy2st.parity.inputs import InputSet
from dy2st.parity.reductions import largest_sum
from dy2st.parity.stages import OnnxSession, eager_reference
from dy2st.report.parity_report import render_text

ZEROS = torch.zeros(50, dtype=torch.long)

# What is done with a tensor of shape (3, 50), and the terms that this adds up.
TERMS: dict[str, tuple[Any, int]] = {
    "element by element": (lambda x: (x * 2 + 1).relu(), 1),
    "sum": (lambda x: x.sum(), 150),
    "sum of rows": (lambda x: x.sum(1), 50),
    "mean": (lambda x: x.mean(), 150),
    "mean of columns": (lambda x: x.mean(0, keepdim=True), 3),
    "prod": (lambda x: x.prod(1), 50),
    "var": (lambda x: x.var(), 150),
    "norm": (lambda x: x.norm(), 150),
    "logsumexp": (lambda x: x.logsumexp(1), 50),
    "softmax": (lambda x: x.softmax(0), 3),
    "log_softmax": (lambda x: x.log_softmax(-1), 50),
    "cumsum": (lambda x: x.cumsum(1), 50),
    "cumprod in place": (lambda x: x.cumprod_(0), 3),
    "matmul": (lambda x: x @ x.T, 50),
    "matmul with a vector": (lambda x: x @ x[0], 50),
    "batched matmul": (lambda x: x[None] @ x.T[None], 50),
    "dot": (lambda x: x[0].dot(x[1]), 50),
    "addmv": (lambda x: torch.addmv(x[:, 0], x, x[0]), 50),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), 50),
    "linear": (lambda x: F.linear(x, x, x[0, :3]), 50),
    "convolution": (lambda x: F.conv2d(x.view(1, 3, 5, 10), torch.ones(2, 3, 4, 5)), 60),
    "attention": (lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]), 50),
    "layer norm": (lambda x: F.layer_norm(x, (50,)), 50),
    "group norm": (lambda x: F.group_norm(x.view(1, 6, 25), 2), 75),
    "batch norm in training": (lambda x: F.batch_norm(x.T, None, None, training=True), 50),
    "batch norm": (lambda x: F.batch_norm(x.T, torch.zeros(3), torch.ones(3)), 1),
    "mean squared error": (lambda x: F.mse_loss(x, x + 1), 150),
    "cross entropy": (lambda x: F.cross_entropy(x.T, ZEROS), 50),
    "cdist": (lambda x: torch.cdist(x, x), 50),
    "index_add": (lambda x: torch.zeros(4).index_add(0, ZEROS, x[0]), 50),
    "scatter_add in place": (lambda x: torch.zeros(4).scatter_add_(0, ZEROS, x[0]), 50),
    "index_put that adds": (lambda x: torch.zeros(4).index_put((ZEROS,), x[0], accumulate=True), 50),
    "index_put": (lambda x: torch.zeros(4).index_put((ZEROS,), x[0]), 1),
    "embedding_bag": (lambda x: F.embedding_bag(ZEROS[None], x), 50),
    "bincount with weights": (lambda x: torch.bincount(ZEROS, x[0]), 50),
    "max": (lambda x: x.max(), 1),
    "max with its index": (lambda x: x.max(1).values, 1),
    "count": (lambda x: (x > 0).sum(), 1),
    "sum of integers": (lambda x: x.long().sum() * 0.5, 1),
    "nothing": (lambda x: x[:0].sum(1), 1),
    "the largest of several": (lambda x: x.sum(1).sum() + x.sum(0).mean() + x.sum(), 150),
}


@pytest.mark.parametrize("name", TERMS)
def test_terms(name: str) -> None:
    model, terms = TERMS[name]
    assert largest_sum(model, InputSet("0", (torch.rand(3, 50) + 0.1,))) == terms


def test_inside_of_modules_and_of_what_the_input_decides() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(50, 7)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            while x.sum() > 1000:
                x = x / 2
            return self.inner(x) if x[0, 0] > 0 else x.sum()

    net = Net()
    assert largest_sum(net, InputSet("0", (torch.ones(3, 50),))) == 150
    assert largest_sum(net.inner, InputSet("0", (torch.ones(3, 50),))) == 50
    assert net.calls == 0


def test_what_raises_has_no_sums() -> None:
    assert largest_sum(lambda x: x.sum() + x.nothing, InputSet("0", (torch.ones(3),))) == 1


class Inexact(OnnxSession):
    """onnxruntime that adds up in an order of its own: off by 3e-4, where a sum of a million terms may be by 4.8e-4."""

    def outputs(self, feed: dict[str, Tensor]) -> list[Any]:
        return [replace(each, tensor=each.tensor * (1 + 3e-4)) for each in super().outputs(feed)]


def summed(x: Tensor) -> Tensor:
    if x[0] > 0.5:
        x = x * 2
    return x.mean()


@pytest.mark.parametrize(("size", "status", "terms"), [(1_000_000, "equal", 1_000_000), (100_000, "differs", 0)])
def test_a_sum_is_equal_within_what_its_terms_allow(tmp_path: Path, size: int, status: str, terms: int) -> None:
    reference = eager_reference(summed, InputSet("0", (torch.ones(size),)))
    file = tmp_path / "summed.onnx"
    dy2st.onnx.export(summed, reference.inputs.args, file)
    report = compare_stages(summed, [reference], onnx_file=file, make=Inexact)
    (stage,) = report.inputs[0].stages
    assert (stage.status, stage.terms) == (status, terms)
    said = "input 0: onnxruntime is equal within the tolerance of a sum of 1,000,000 terms"
    assert (said in render_text(report)) == (status == "equal")
    bounded = compare_stages(summed, [reference], onnx_file=file, make=Inexact, rtol=1e-4, atol=1e-5)
    assert bounded.inputs[0].stages[0].status == "differs"
