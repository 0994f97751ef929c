"""Row 47: Python's orders of tensors and of their numbers, with NaN among them."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor

import dy2st

nan = float("nan")
GIVEN = [[3.0, 1.0, 2.0], [5.0, 7.0, 5.0, -1.0], [1.0, 1.0]]


def of_rows(x: Tensor) -> Any:
    return torch.stack(sorted(x)), torch.stack(sorted(x, reverse=True)), sorted(x, key=lambda value: -value.abs())[1]


def of_numbers(x: Tensor) -> Any:
    values = x.tolist()
    values.sort()
    least, *_, most = sorted(x)
    return least, most, torch.tensor(values)


def of_heaps(x: Tensor) -> Any:
    return torch.stack(heapq.nsmallest(2, list(x))), torch.stack(heapq.nlargest(2, list(x)))


@row(47)
@pytest.mark.parametrize(
    ("model", "dynamic"), [(of_rows, True), (of_rows, False), (of_numbers, True), (of_numbers, False), (of_heaps, True)]
)
def test_sorted(model: Any, dynamic: bool) -> None:
    given = [(torch.tensor(row),) for row in GIVEN if dynamic or len(row) == 3]
    agree(model, given, {"x": dyn(0)} if dynamic else None, paths=1)
    program = dy2st.export(model, given[0], dynamic_shapes={"x": dyn(0)} if dynamic else None)
    with pytest.raises(RuntimeError, match="exported for keys without NaN: test_feature_orders"):
        program.module()(torch.tensor([2.0, nan, 1.0]))


def extremes(x: Tensor) -> Any:
    return max(x), min(x), max(x.tolist()), min(x.tolist()), max(x, key=lambda value: -value)


@row(47)
def test_extremes_of_nan() -> None:
    """Nothing is beyond NaN, which is beyond nothing."""
    rows = [*GIVEN, [3.0, nan, 1.0], [1.0, 2.0, nan], [nan, 2.0], [-float("inf"), nan]]
    agree(extremes, [(torch.tensor(row),) for row in rows], {"x": dyn(0)}, paths=1)
