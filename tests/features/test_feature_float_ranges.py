"""Row 50: ``numpy.arange`` of floats that are data, as the range that a loop goes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor

INPUTS = [
    (torch.tensor(x), torch.tensor(s))
    for x, s in (([0.3, 1.2], 3.0), ([0.01, 0.02], 0.04), ([-5.0, 9.0], 4.05), ([-5.0, 9.0], 0.0))
]


def schedule(x: Tensor, _s: Tensor) -> Tensor:
    largest = x.abs().max().item()
    scales = (
        [largest**2]
        + [np.exp(e) for e in np.arange(2 * np.log(largest), 2 * np.log(0.05), 2 * np.log(0.5))]
        + [0.05**2]
    )
    for scale in scales:
        x = x * 0.9 + scale
    return x


def summed(x: Tensor, s: Tensor) -> Any:
    total, count = 0.0, 0
    for e in np.arange(x.sum().item(), s.item(), 0.1):
        total, count = total + e, count + 1
    return x * total, count


def to_a_bound(x: Tensor, s: Tensor) -> Tensor:
    for e in np.arange(s.item()):
        x = x + e
    return x


def backwards(x: Tensor, s: Tensor) -> Tensor:
    for e in np.arange(s.item(), -1, -0.7):
        x = x + e
    return x


@row(50)
@pytest.mark.parametrize("model", [schedule, summed, to_a_bound, backwards])
def test_a_loop_goes_through_it(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, whole=False)


def step_of_zero(x: Tensor, s: Tensor) -> Tensor:
    for e in np.arange(0.0, 5.0, s.item()):
        x = x + e
    return x


@row(50)
def test_eager_raises_for_a_step_of_zero_and_so_do_all() -> None:
    agree(step_of_zero, INPUTS[:3], raising=INPUTS[3:])


def computed_with(x: Tensor, s: Tensor) -> Tensor:
    return x * (np.arange(s.item()) + 1).sum()


def asked_for_its_class(x: Tensor, s: Tensor) -> Tensor:
    return x * 2 if isinstance(np.arange(s.item()), np.ndarray) else x


@row(50)
@pytest.mark.parametrize("model", [computed_with, asked_for_its_class])
def test_what_only_an_array_can_do_is_refused(model: Callable[..., Any]) -> None:
    refuses(model, INPUTS[0])
