"""The branches and loops in the forward of an ``autograd.Function`` are followed like any others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st


class Series(torch.autograd.Function):
    """As libraries write it: with a context."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        if x.sum() < 0:
            return torch.zeros_like(x)
        term, total = x, x
        while term.abs().max() > 0.1:
            term = term * 0.5
            total = total + term
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


class Apart(torch.autograd.Function):
    """With ``setup_context``."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x - 1

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


@pytest.mark.slow_but_for("Apart")
@pytest.mark.parametrize("function", [Series, Apart])
def test_their_paths_are_covered(function: Any) -> None:
    def model(x: Tensor) -> Tensor:
        return function.apply(x + 0)

    few = dy2st.check(model, [(torch.ones(3),)])
    assert few.ok
    assert not few.covered
    inputs = [(scale * torch.ones(3),) for scale in (1.0, -1.0, 0.05, 0.15)]
    report = dy2st.check(model, inputs)
    assert report.ok
    assert report.covered, report.uncovered
    assert dy2st.check(model, inputs[:1], search=5).covered
