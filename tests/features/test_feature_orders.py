"""Row 47: Python's orders of tensors and of their numbers, with NaN among them."""

from __future__ import annotations

import bisect
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


def heap_of_few(x: Tensor) -> Any:
    heap: list[Any] = []
    for i in range(3):
        heapq.heappush(heap, (x[i], i))
    least, place = heapq.heappop(heap)
    others = [x[0], x[1] * 2, x[2] + 1]
    heapq.heapify(others)
    return least, place, heapq.heappushpop(others, x[0] * 2), heapq.heappop(others)


def smallest_of_few(x: Tensor) -> Any:
    places = heapq.nsmallest(2, range(3), key=lambda i: x[i])
    return x[places[0]], heapq.nlargest(1, x.unbind()), heapq.nsmallest(-1, list(x)), heapq.nsmallest(1, [3, 1])


def bisected(x: Tensor) -> Any:
    limits = [0.0, 1.0, 2.0]
    places = bisect.bisect(limits, x[0]), bisect.bisect_left(limits, float(x[1]), 1), bisect.bisect(limits, x[2], 0, 2)
    limits.insert(bisect.bisect_left(limits, -x[0], key=lambda limit: limit * 2), 9.0)
    kept = sorted([x[0], x[1]])
    bisect.insort(kept, x[2])
    return *places, torch.stack(kept), torch.tensor(limits)


@row(47)
@pytest.mark.parametrize("model", [heap_of_few, smallest_of_few, bisected], ids=lambda model: model.__name__)
def test_a_known_number_of_values(model: Any) -> None:
    rows = [[3.0, 1.0, 2.0], [1.0, 1.0, -1.0], [0.0, 5.0, 7.0], [2.0, 2.0, 2.0]]
    agree(model, [(torch.tensor(row),) for row in rows], paths=1)


def extremes(x: Tensor) -> Any:
    return max(x), min(x), max(x.tolist()), min(x.tolist()), max(x, key=lambda value: -value)


@row(47)
def test_extremes_of_nan() -> None:
    """Nothing is beyond NaN, which is beyond nothing."""
    rows = [*GIVEN, [3.0, nan, 1.0], [1.0, 2.0, nan], [nan, 2.0], [-float("inf"), nan]]
    agree(extremes, [(torch.tensor(row),) for row in rows], {"x": dyn(0)}, paths=1)
