"""Rows 24, 26 and 28: containers that operators, slices and ``tolist()`` make of others, and that change later."""

# ruff: noqa: B905, RUF005 - the constructs under test are written as users write them
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, row, tables
from torch import Tensor


def _repeated(x: Tensor) -> Any:
    return [x[0]] * 2


def _repeated_from_the_left(x: Tensor) -> Any:
    return 2 * [x[0]]


def _joined(x: Tensor) -> Any:
    return [x[0]] + [x[1]]


def _joined_twice(x: Tensor) -> Any:
    return [x[0]] + [x[1]] + [x[2]]


def _sliced(x: Tensor) -> Any:
    return [x[0], x[1], x[2]][:2]


def _listed(x: Tensor) -> Any:
    return x.tolist()


def _united(x: Tensor) -> Any:
    return {0: x[0], 1: x[1]} | {1: x[2]}


@row(10, 24, 26)
@pytest.mark.parametrize(
    "make", [_repeated, _repeated_from_the_left, _joined, _joined_twice, _sliced, _listed, _united]
)
def test_a_container_made_by_an_operator_after_an_early_return_can_change(make: Callable[[Tensor], Any]) -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 6:
            return x
        out = make(x)
        if x[0] > 0:
            out[0] = x.sum()
        for i, each in enumerate(x[:2]):
            if each < 0:
                continue
            out[i] = each * 3
        return x * out[0] + out[1]

    rows = [[-1.0, 2.0, 0.5], [1.0, -2.0, 3.0], [3.0, 3.0, 1.0], [-1.0, -2.0, 1.0]]
    agree(model, [(torch.tensor(each),) for each in rows], paths=4)


@row(10, 26, 59)
def test_a_list_of_one_tensor_several_times_is_filled_for_each_row_that_has_something() -> None:
    """As detections are gathered for each image."""

    def model(boxes: Tensor) -> list[Tensor]:
        if boxes.shape[1] == 6:
            return [boxes[0], boxes[1]]
        found = [torch.zeros(0)] * boxes.shape[0]
        for i, (row_, kept) in enumerate(zip(boxes, boxes > 0)):
            left = row_[kept]
            if not left.shape[0]:
                continue
            found[i] = left
        return found

    agree(model, [*tables((2, 5), (2, 6), (2, 7)), (-torch.ones(2, 4),)], (dyn(1),), paths=3)
