"""Row 48: rows, sizes and numbers of tensors that are computed of constants alone are Python's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from harness import agree, dyn, row, tables
from torch import Tensor


def dims_of_a_loop(x: Tensor) -> Tensor:
    for dim in reversed(torch.arange(x.ndim)):
        x = x.sum(int(dim), keepdim=True)
    return x


def rows_of_combinations(x: Tensor) -> Tensor:
    for dim in torch.combinations(torch.arange(x.ndim), x.ndim - 1):
        x = x.sum(dim.tolist()[0], keepdim=True)
    return x


def pairs_of_numbers(x: Tensor) -> Tensor:
    pairs = [(i.item(), j.item()) for i, j in torch.combinations(torch.arange(3), 2)]
    return torch.stack([x[i] - x[j] for i, j in pairs])


def places_of_a_mask(x: Tensor) -> Tensor:
    total = x.new_zeros(x.shape[1])
    for row_, column in torch.nonzero(torch.ones(3, 3).triu(1)):
        total = total + x[row_] * x[column]
    return total


def distinct_numbers(x: Tensor) -> Tensor:
    for by in torch.unique(torch.tensor([3, 1, 2, 1])):
        x = x.roll(int(by), 1)
    return x


def parts_of_a_constant(x: Tensor) -> Tensor:
    first, second = torch.arange(1, 5).chunk(2)
    values, places = torch.tensor([2, 5, 3]).max(0)
    return x.narrow(1, int(first[0]), int(second[0]) - 1).sum(1) + int(values) - int(places)


@row(48)
@pytest.mark.parametrize(
    "model",
    [dims_of_a_loop, rows_of_combinations, pairs_of_numbers, places_of_a_mask, distinct_numbers, parts_of_a_constant],
)
def test_they_are_known(model: Callable[[Tensor], Tensor]) -> None:
    agree(model, tables((3, 4), (5, 6)), {"x": dyn(0, 1)}, paths=1)
