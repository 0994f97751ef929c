"""Tensors made of numbers in the default dtype, and clamps with bounds of two kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnxruntime
import pytest
import torch
from torch import Tensor

import dy2st

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def double_by_default() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def check(model: Callable[[Tensor], Any], file: Path, *inputs: Tensor) -> None:
    """The file gives what eager gives, to the last digits of its dtype, for inputs of several lengths."""
    n = torch.export.Dim("n")
    program = dy2st.export(model, inputs[:1], dynamic_shapes=({0: n},))
    dy2st.onnx.export(program, f=file)
    session = onnxruntime.InferenceSession(str(file))
    names = [each.name for each in session.get_inputs()]
    for x in inputs:
        found = torch.from_numpy(session.run(None, dict(zip(names, [x.numpy()], strict=False)))[0])
        expected = model(x)
        tight = torch.finfo(expected.dtype).eps * 8
        torch.testing.assert_close(found, expected, rtol=tight, atol=tight)


def filled_in_a_loop(x: Tensor) -> Tensor:
    steps = torch.linspace(0, 1, 7)
    total = torch.zeros(7)
    while total.sum() < 3:
        total = total + steps * x[0] + 0.1
    return total


@pytest.mark.usefixtures("double_by_default")
@pytest.mark.parametrize(
    "model",
    [
        lambda x: torch.ones(3) / 3 + x[0],
        lambda x: torch.zeros(x.shape[0]) + x,
        lambda x: torch.full((3,), 0.1) * x[0],
        lambda x: torch.linspace(0, 1, 7) * x[0],
        lambda x: torch.arange(0, 1, 0.1) * x[0],
        lambda x: torch.arange(0.0, x.shape[0]) / 7,
        lambda x: torch.scalar_tensor(0.1) + x,
        lambda x: torch.hann_window(7) * x[0],
        lambda x: torch.eye(3) / 3 + x[0],
        filled_in_a_loop,
    ],
)
def test_new_tensor_has_the_default_dtype(model: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    check(model, tmp_path / "m.onnx", torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.7, 0.9, 0.01, 0.2]))


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x.clamp(0.3, 3),
        lambda x: x.clamp(0, 0.5),
        lambda x: x.clamp(min=-0.1, max=1),
        lambda x: torch.clip(x, 1e-6, 1),
        lambda x: x.cumsum(0).clamp_(0.3, 1),
        lambda x: (x > 0).long().clamp(0.3, 3),
        lambda x: x.double().clamp(0.1, 1),
        lambda x: (x * 10).clamp(0.5, x.shape[0]),
        lambda x: (x * 10).clamp(x.shape[0] - 5, 2.5),
        lambda x: x.clamp(x.shape[0] * 0.1, 3),
        lambda x: x.clamp(0.1, 3) if x.sum() > 1 else x.clamp(-1, 0.2),
    ],
)
def test_clamp_between_an_int_and_a_float(model: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    check(model, tmp_path / "m.onnx", torch.tensor([0.1, -0.2, 4.0]), torch.tensor([-3.0, 0.25, 0.7, 0.4, -0.4]))
