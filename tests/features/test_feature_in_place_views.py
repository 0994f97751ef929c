"""Row 31: ``squeeze_``, ``t_`` and their kind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, both_signs, refuses, row, vectors
from torch import Tensor


def _squeezed(x: Tensor) -> Any:
    y = x.clone().unsqueeze(0)
    if x.sum() > 0:
        y.squeeze_(0)
        x = x + y.sum()
    return x * 2, y.sum(0)


def _turned(x: Tensor) -> Any:
    y = x.clone().reshape(2, 2)
    while x.sum() > 0:
        y.t_()
        x = x - 1
    return y * torch.tensor([1.0, 2.0])


def _turned_by_a_function(x: Tensor) -> Any:
    def turn(y: Tensor) -> None:
        if x.sum() > 0:
            return
        y.transpose_(0, 1)

    y = x.clone().reshape(2, 2)
    turn(y)
    return y * torch.tensor([1.0, 2.0])


@row(31)
@pytest.mark.parametrize("function", [_squeezed, _turned, _turned_by_a_function])
def test_a_tensor_from_before_is_refused(function: Any) -> None:
    assert refuses(function, vectors(4)[0]).code == "D2S224"


def _made_there(x: Tensor) -> Any:
    y = x.clone().reshape(1, 4)
    y.squeeze_(0)
    if x.sum() > 0:
        z = x.reshape(1, 4) * 2
        z.squeeze_(0)
        y = y + z
    return y * 3


@row(31)
def test_a_tensor_of_the_path_itself() -> None:
    agree(_made_there, both_signs(4, 4))
