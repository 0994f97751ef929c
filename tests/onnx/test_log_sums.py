"""``logaddexp`` and its kin in a file: infinities, NaN and zeros of both signs are as in eager."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import dy2st.onnx

SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 3e38, -3e38, 6e4, -6e4, 1.0, -1.0, 2.5]


def along(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack([x, y, x]).logcumsumexp(0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("compute", [torch.logaddexp, torch.logaddexp2, along], ids=["natural", "binary", "running"])
def test_special_numbers(compute: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype) -> None:
    numbers = torch.tensor(SPECIAL, dtype=torch.float64)
    x, y = (each.reshape(-1).to(dtype) for each in torch.meshgrid(numbers, numbers, indexing="ij"))
    program = dy2st.onnx.export(compute, (x, y))
    torch.testing.assert_close(program(x, y)[0], compute(x, y), equal_nan=True)


def test_there_is_no_test_of_equal_infinities() -> None:
    program = dy2st.onnx.export(torch.logaddexp, (torch.ones(3), torch.ones(3)))
    kinds = [node.op_type for node in program.model.graph]
    assert kinds == ["Max", "Min", "Clip", "Sub", "Exp", "Add", "Log", "Add"]
