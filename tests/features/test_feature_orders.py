"""Row 47: Python's orders of tensors and of their numbers, with NaN among them."""

from __future__ import annotations

import bisect
import dataclasses
import functools
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


class Node:
    def __init__(self, cost: Any, place: int) -> None:
        self.cost = cost
        self.place = place

    def __lt__(self, other: Node) -> Any:
        return self.cost < other.cost


@functools.total_ordering
class Scored:
    def __init__(self, cost: Any, place: int) -> None:
        self.cost = cost
        self.place = place

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Scored) and self.cost == other.cost

    def __lt__(self, other: Scored) -> Any:
        return self.cost < other.cost

    __hash__ = None  # type: ignore[assignment]


@dataclasses.dataclass(order=True)
class Hypothesis:
    cost: float
    place: int = dataclasses.field(compare=False)


def places_of(made: list[Any]) -> Tensor:
    return torch.tensor([each.place for each in made], dtype=torch.int64)


def of_objects(kind: Any) -> Any:
    def model(x: Tensor) -> Any:
        made = []
        for place, value in enumerate(x.tolist()):
            if value > 0:
                made.append(kind(value, place))
        least = min(made)
        later = sorted(made, reverse=True)
        made.sort()
        return places_of(made), places_of(later), least.place, places_of(made[:1])

    return model


def of_two_objects(x: Tensor) -> Any:
    made = [Hypothesis(x[0].item(), 0), Hypothesis(x[1].item(), 1)]
    ordered = sorted([Node(x[0].item(), 0), Node(-x[1].item(), 1)])
    ordered[0].place += 10
    return max(made).place, made[0] < made[1], [each.place for each in ordered]


@pytest.mark.slow_but_for("Hypothesis")
@row(47)
@pytest.mark.parametrize("kind", [Node, Scored, Hypothesis], ids=lambda kind: kind.__name__)
def test_objects_with_an_order_of_their_own(kind: Any) -> None:
    given = [(torch.tensor(row),) for row in GIVEN]
    agree(of_objects(kind), given, {"x": dyn(0)}, paths=1)


@row(47)
def test_a_known_number_of_objects() -> None:
    agree(of_two_objects, [(torch.tensor(row),) for row in ([1.0, 2.0], [2.0, 1.0], [3.0, 3.0])], paths=1)


class Later:
    def __init__(self, cost: Any) -> None:
        self.cost = cost

    def __lt__(self, other: Later) -> Any:
        return other.cost - self.cost > 1


def by_leaps(x: Tensor) -> Any:
    return torch.tensor([each.cost for each in sorted([Later(value) for value in x.tolist() if value > 0])])


@row(47)
def test_what_has_no_order() -> None:
    program = dy2st.export(by_leaps, (torch.tensor(GIVEN[0]),), dynamic_shapes={"x": dyn(0)})
    for values in ([9.0, 3.0, 6.0, 3.0], [1.0, 1.5]):
        assert torch.equal(program.module()(torch.tensor(values)), by_leaps(torch.tensor(values)))
    with pytest.raises(RuntimeError, match="__lt__ is an order: test_feature_orders"):
        program.module()(torch.tensor([1.0, 2.0, 3.0]))


def unequal(x: Tensor) -> Any:
    one, other = Scored(x[0].item(), 0), Scored(x[1].item(), 1)
    return x * 2 if one != other else x


@row(47)
def test_the_opposite_of_an_equality() -> None:
    agree(unequal, [(torch.tensor(row),) for row in ([1.0, 2.0], [3.0, 3.0])], paths=2)


@dataclasses.dataclass(order=True)
class Costed:
    cost: float


@dataclasses.dataclass(eq=False)
class Placed(Costed):
    place: float


def by_inherited_methods(x: Tensor) -> Any:
    one, other = x[0].item(), x[1].item()
    low, high = Placed(one, other), Placed(one, one)
    return [low < high, low <= high, low == high, low != high, Costed(one) < Costed(other)]


@row(47)
def test_methods_of_dataclasses_compare_the_fields_of_their_own_class() -> None:
    agree(by_inherited_methods, [(torch.tensor(row),) for row in ([1.0, 2.0], [2.0, 1.0], [3.0, 3.0])], paths=1)
