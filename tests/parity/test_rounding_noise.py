"""What rounding does to eager itself is no difference of a file; anything more is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor

import dy2st
import dy2st.onnx
from dy2st.parity.causes import Causes
from dy2st.parity.inputs import InputSet
from dy2st.parity.outputs import flat_outputs
from dy2st.parity.rounding_noise import rounding_spread

torch.manual_seed(0)
INPUTS = [(torch.randn(1000),), (torch.randn(1000) * 100,)]


def numbers(x: Tensor) -> dict[str, Any]:
    return {"sum": x.sum().item(), "mean": x.exp().mean().item() * 2 + 1, "all": [x.std().item(), float(x.norm())]}


def residual(x: Tensor) -> Tensor:
    matrix = torch.eye(4) * 3 + 0.1
    return matrix @ torch.linalg.solve(matrix, x[:4]) - x[:4]


def two_sums(x: Tensor) -> Tensor:
    return x.sum() - x.flip(0).sum()


def centred(x: Tensor) -> Tensor:
    return (x - x.mean()).sum()


def of_a_path(x: Tensor) -> float:
    m = x.mean()
    if m > 0:
        return (x - m).mean().item()
    return (x + m).std().item()


def variance(x: Tensor) -> Tensor:
    return x.var() - (x * x).mean() + x.mean() ** 2


def of_targets(x: Tensor) -> Tensor:
    """Noise would take a target beyond 1, where the operator raises."""
    target = (x > x.mean()).float()
    return torch.nn.functional.binary_cross_entropy(x.sigmoid(), target, reduction="none").sum().double() / 3


RIGHT = [numbers, residual, two_sums, centred, of_a_path, variance, of_targets]


@pytest.mark.parametrize("model", RIGHT)
def test_what_cancels_is_judged_by_its_terms(model: Callable[[Tensor], Any]) -> None:
    report = dy2st.check(model, INPUTS)
    assert report.ok, str(report)


def test_the_report_says_so() -> None:
    report = dy2st.check(centred, INPUTS)
    assert "is equal within what rounding changes in eager itself" in str(report)
    assert any(stage.rounding for result in report.inputs for stage in result.stages)


def test_a_bound_that_is_given_is_kept() -> None:
    assert not dy2st.check(centred, INPUTS, atol=1e-9).ok


@pytest.mark.parametrize("model", [centred, variance, numbers])
def test_a_wrong_file_is_found(model: Callable[[Tensor], Any], tmp_path: Path) -> None:
    """One constant or one operator of the file is another."""
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(model, INPUTS[0], file)
    wrong = onnx.load(file)
    node = next(each for each in wrong.graph.node if each.op_type in ("Sub", "Sqrt", "Exp"))
    node.op_type = {"Sub": "Add", "Sqrt": "Abs", "Exp": "Abs"}[node.op_type]
    onnx.save(wrong, file)
    assert not dy2st.check(model, INPUTS, onnx_file=file).ok


def test_a_constant_of_fewer_digits_is_found(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return x * torch.tensor(0.1, dtype=torch.float64) - 0.1 * x.sum()

    x = torch.linspace(1, 2, 5, dtype=torch.float64)
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(model, (x,), file)
    wrong = onnx.load(file)
    changed = 0
    for each in wrong.graph.initializer:
        value = numpy_helper.to_array(each)
        if value.dtype == "float64" and value.size == 1 and abs(value.item() - 0.1) < 1e-9:
            each.CopyFrom(
                numpy_helper.from_array((value * (1 + 1e-8)).astype("float64").reshape(value.shape), each.name)
            )
            changed += 1
    assert changed
    onnx.save(wrong, file)
    assert not dy2st.check(model, [(x,)], onnx_file=file).ok


def test_a_set_without_elements_names_the_mend(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return x.sum(0) + 1

    file = tmp_path / "model.onnx"
    dy2st.onnx.export(
        lambda x: x.sum(0) + (2.0 - (x.shape[0] > 0)),
        (torch.ones(3, 2),),
        file,
        dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
    )
    report = dy2st.check(model, [(torch.ones(3, 2),), (torch.ones(0, 2),)], onnx_file=file)
    assert 'Dim("batch", min=1)' in str(report)


def test_what_is_infinite_by_rounding_alone() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return (1 - x.tanh()).log() if x.sum() > 0 else x

    spread = rounding_spread(lambda: (flat_outputs(model(torch.tensor([9.1, 0.5]))), 0))
    assert spread is not None
    assert spread[0].isinf().tolist() == [True, False]


def test_a_number_that_a_model_with_weights_adds_up() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x: Tensor) -> float:
            total = 0.0
            for row in self.layer(x):
                total += row.exp().sum().item()
            return total

    model, given = Model(), InputSet("0", (torch.randn(4, 3),))
    weights = [each.clone() for each in model.parameters()]
    spread = Causes(model).rounding(given)
    assert spread is not None
    assert 0 < float(spread[0]) < 1e-4
    assert all(map(torch.equal, weights, model.parameters()))
