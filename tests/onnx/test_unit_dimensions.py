"""Rows as matrices: where the dimension of size 1 is left out, where it stays, and that neither changes a result."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.unit_dimensions import leave_out_unit_dimensions
from tests.onnx.graph_text import OPSET, changed, shown

# Whole numbers, whose sums no order changes.
TEXT = """
    g (float[batch, 4] x, float[batch, 1, 4] wide) => ({results}) {{
        one = Constant<value_ints = [1]>()
        zero = Constant<value_int = 0>()
        w = Constant<value = float[4, 4] {{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}}>()
        b = Constant<value = float[4] {{1, 2, 3, 4}}>()
        two = Constant<value = float {{2}}>()
        sizes = Constant<value_ints = [-1, 1, 4]>()
        heads = Constant<value_ints = [-1, 2, 2]>()
        same = Constant<value_ints = [0, 1, 4]>()
        row = {source}
        {body}
    }}"""
Y, Z = "float[batch, 4] y", "float[p, q, r] z"


def _narrowed(model: ir.Model) -> None:
    leave_out_unit_dimensions(model, OPSET)
    passes.RemoveUnusedNodesPass()(model)


def calls() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    sizes = (3, 1, 0)
    return [
        tuple(rng.integers(-4, 5, size).astype(np.float32) for size in ((n, 4), (n, 1, 4)))  # type: ignore[misc]
        for n in sizes
    ]


def narrowed(body: str, results: str = Y, source: str = "Unsqueeze(x, one)") -> list[str]:
    return changed(TEXT.format(body=body, results=results, source=source), _narrowed, *calls())


@pytest.mark.parametrize("taken", ["Gather<axis = 1>(s, zero)", "Squeeze(s, one)"])
def test_rows_are_matrices(taken: str) -> None:
    lines = narrowed(f"p = MatMul(row, w) q = Add(p, b) r = Relu(q) s = Mul(two, r) t = {taken} y = Neg(t)")
    assert lines == ["MatMul", "Add", "Relu", "Mul", "Neg"]


def test_norms_and_sums_of_rows() -> None:
    body = """n, mean, deviation = LayerNormalization<axis = 2>(row, b, b) zeros = Sub(n, n) p = MatMul(zeros, w)
        q = Add(row, p) s = Softmax(zeros) u = Add(s, q) flat = Squeeze(u, one) y = Identity(flat)"""
    assert "Unsqueeze" not in narrowed(body)


def test_what_is_given_another_shape() -> None:
    lines = narrowed("p = MatMul(row, w) z = Reshape(p, heads)", Z, source="Reshape(x, sizes)")
    assert lines == ["Constant", "Reshape", "MatMul", "Reshape"]


def test_what_needs_the_dimension_gets_it() -> None:
    body = "p = MatMul(row, w) q = Add(p, b) z = Add(q, wide)"
    assert narrowed(body, "float[batch, 1, 4] z") == ["MatMul", "Add", "Constant", "Unsqueeze", "Add"]
    body = "p = MatMul(row, w) q = Add(p, row) t = Squeeze(q, one) y = Neg(t) z = Transpose<perm = [1, 0, 2]>(row)"
    assert narrowed(body, f"{Y}, {Z}") == ["Unsqueeze", "MatMul", "Add", "Neg", "Transpose"]


@pytest.mark.parametrize(
    ("body", "results", "source"),
    [
        ("t = Neg(row) y = Squeeze(t, one)", Y, "Unsqueeze(x, one)"),  # no product
        ("p = MatMul(row, w) z = Add(p, wide)", Z, "Reshape(x, sizes)"),  # more nodes
        ("p = MatMul(row, w) z = Reshape(p, same)", Z, "Reshape(x, same)"),  # a size as it was
        ("p = MatMul(wide, w) t = Squeeze(p, one) y = Neg(t)", Y, "Unsqueeze(x, one)"),  # a row of elsewhere
        ("t = Transpose<perm = [0, 2, 1]>(row) p = MatMul(row, t) z = Neg(p)", Z, "Unsqueeze(x, one)"),
    ],
)
def test_others_stay(body: str, results: str, source: str) -> None:
    text = TEXT.format(body=body, results=results, source=source)
    assert changed(text, _narrowed, *calls()) == changed(text, passes.RemoveUnusedNodesPass(), *calls())


class Decoder(nn.Module):
    """One token per step through attention over all before it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        keys = x.new_zeros(x.shape[0], 0, 8)
        values = x.new_zeros(x.shape[0], 0, 8)
        t = 0
        while t < steps:
            row = x[:, None]
            q, k, v = self.qkv(self.norm(row)).chunk(3, -1)
            keys, values = torch.cat([keys, k], 1), torch.cat([values, v], 1)
            row = row + self.out((q @ keys.transpose(1, 2)).softmax(-1) @ values)
            x = torch.tanh(row[:, 0])
            t += 1
        return x, keys


@pytest.mark.slow_but_for("batch1")
@pytest.mark.parametrize("batch", [functools.partial(Dim, "batch"), functools.partial(Dim, "batch", min=1)])
def test_a_decoder(batch: functools.partial[Dim], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, shapes = Decoder().eval(), ({0: batch()}, None)
    sizes = [(2, 3), (1, 1), (3, 0), (4, 5)] + [(0, 2)] * ("min" not in batch.keywords)
    given = [(torch.randn(n, 8), torch.tensor(steps)) for n, steps in sizes]
    file = tmp_path / "decoder.onnx"
    dy2st.onnx.export(model, given[0], file, dynamic_shapes=shapes)
    report = dy2st.check(model, given, dynamic_shapes=shapes, onnx_file=file)
    assert report.ok, report
    kinds = [line.strip() for line in shown(ir.from_proto(onnx.load(file)).graph)]
    assert kinds.count("MatMul") == 4
    assert "LayerNormalization" in kinds
