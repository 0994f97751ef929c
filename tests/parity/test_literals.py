"""Paths that only a number of the source leads to, or a value that is none: found from the specs alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.parity.literals import numbers_near

LIMIT = 17


def constant(x: Tensor) -> Tensor:
    if x.mean() == 0.75:
        return x + 1
    return x


def counted(x: Tensor) -> Tensor:
    many = 0
    for value in x:
        if value > 0.5:
            many += 1
    if many > 10:
        return x * 2
    return x


def sized(x: Tensor) -> Tensor:
    if x.shape[0] == LIMIT:
        return x + 1
    if x.shape[0] > 40:
        return x - 1
    return x


def special(x: Tensor) -> Tensor:
    if x.isnan().any():
        return torch.nan_to_num(x)
    if x.isinf().any():
        return x.clamp(-5, 5)
    return x


class Threshold(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.threshold = 12.125
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() == self.threshold:
            return x - 1
        return x


@pytest.mark.parametrize(
    "model",
    [constant, counted, sized, special, Threshold()],
    ids=lambda model: getattr(model, "__name__", type(model).__name__),
)
def test_it_is_found(model: Any) -> None:
    report = dy2st.check(model, [(torch.ones(3),), (torch.ones(4),), (torch.ones(0),)], search=3)
    assert report.ok, str(report)
    assert report.covered, str(report)


def test_the_numbers_are_those_of_the_functions_that_have_sites() -> None:
    report = dy2st.check(sized, [(torch.ones(3),), (torch.ones(4),)])
    assert numbers_near(sized, report.paths) == (40.0, 17.0)
    report = dy2st.check(Threshold(), [(torch.ones(3),), (torch.ones(4),)])
    assert numbers_near(Threshold(), report.paths) == (12.125,)
