"""Row 40: a function with a cache is called with a number that is one of a few constants, by the path taken before."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor

INPUTS = [(torch.tensor(v),) for v in ([3.0, -4.0], [0.3, 0.4], [5.0, 1.0], [-5.0, 1.0], [1.5, 0.7])]


@functools.cache
def points(count: int, **options: Any) -> tuple[Tensor, Tensor]:
    found, weights = np.polynomial.legendre.leggauss(count)
    return torch.as_tensor(found, **options), torch.as_tensor(weights, **options)


@functools.cache
def shifted(row: int, by: int) -> Tensor:
    return torch.arange(12.0).reshape(3, 4)[row] + by


def of_a_ternary(x: Tensor) -> Tensor:
    largest = x.abs().max()
    count = 3 if largest < 1 else 5 if largest < 4.5 else 7
    found, weights = points(count, dtype=x.dtype)
    return (torch.sin(x[:, None] * found) ** 2) @ weights


def of_branches(x: Tensor) -> Tensor:
    if x.sum() < 1:  # noqa: SIM108
        count = 3
    else:
        count = 5
    if x.max() > 4:
        count = 2
    found, weights = points(count, dtype=x.dtype)
    return (x[:, None] * found.abs()) @ weights


def of_two_numbers(x: Tensor) -> Tensor:
    row = 0 if x.sum() < 1 else 2
    by = 1 if x.max() < 2 else 5
    return shifted(row, by) + x.sum()


@row(40)
@pytest.mark.parametrize("model", [of_a_ternary, of_branches, of_two_numbers])
def test_it_is_called_with_each_of_them(model: Callable[[Tensor], Tensor]) -> None:
    agree(model, INPUTS, None, whole=False)


@row(40)
def test_a_number_that_may_be_any_is_refused() -> None:
    def computed(x: Tensor) -> Tensor:
        found, weights = points(int(x.abs().max()) + 1, dtype=x.dtype)
        return (x[:, None] * found) @ weights

    def changed(x: Tensor) -> Tensor:
        count = 3 if x.sum() < 1 else 5
        count = count + int(x.abs().max())
        found, weights = points(count, dtype=x.dtype)
        return (x[:, None] * found) @ weights

    for model in (computed, changed):
        assert refuses(model, INPUTS[0], None).code == "D2S246"


@row(40)
def test_what_the_cache_keeps_is_not_changed() -> None:
    def model(x: Tensor) -> Tensor:
        found = shifted(1 if x.sum() < 1 else 2, 1)
        found += 1
        return found + x.sum()

    assert refuses(model, INPUTS[0], None).code == "D2S221"
