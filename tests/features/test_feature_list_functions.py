"""Row 24: functions of Python's library over lists of data-dependent length."""

# ruff: noqa: C417, PERF401 - the constructs under test are written as users write them
from __future__ import annotations

import bisect
import heapq
import itertools
import math
import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

VALUES = [(torch.tensor(v),) for v in ([3.0, -1.0, 2.0, 5.0], [-1.0, -2.0], [1.0, 4.0, 4.0, 2.0, 0.5], [7.0])]

FUNCTIONS: dict[str, Callable[[list[Any], Tensor], Any]] = {
    "chain": lambda rows, x: torch.stack(list(itertools.chain(rows, [x[0]], rows))),
    "accumulate": lambda rows, x: torch.stack([x[0], *itertools.accumulate(rows)]),
    "accumulate by": lambda rows, x: torch.stack([x[0], *itertools.accumulate(rows, operator.mul, initial=x[0])]),
    "pairwise": lambda rows, x: sum(((b - a).abs() for a, b in itertools.pairwise(rows)), x[0]),
    "islice": lambda rows, x: torch.stack([*itertools.islice(rows, 1, 3), x[0]]),
    "product": lambda rows, x: sum((a * b for a, b in itertools.product(rows, [x[0], x[-1]])), x[0]),
    "combinations": lambda rows, x: sum((a * b for a, b in itertools.combinations(rows, 2)), x[0]),
    "filter": lambda rows, x: torch.stack([*filter(lambda v: v > 2, rows), x[0]]),
    "prod": lambda rows, x: math.prod(rows, start=x[0]),
    "smallest": lambda rows, x: torch.stack([*heapq.nsmallest(2, rows), x[0]]),
    "largest": lambda rows, x: torch.stack([*heapq.nlargest(2, rows, key=lambda v: (v - 3).abs()), x[0]]),
    "bisect": lambda rows, x: (bisect.bisect(sorted(rows), 2.0), bisect.bisect_left(sorted(rows), 2.0)),
    "max": lambda rows, x: (max(rows, default=x[0]), min(rows, key=lambda v: -v, default=x[-1])),
}


def rows_of(x: Tensor) -> list[Any]:
    rows = []
    for value in x:
        if value > 0:
            rows.append(value)
    return rows


@pytest.mark.slow_for("combinations")
@row(24)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function = FUNCTIONS[name]

    def model(x: Tensor) -> Any:
        return function(rows_of(x), x)

    agree(model, VALUES, (dyn(0),), paths=2)


def sorted_by_heap(x: Tensor) -> Any:
    heap: list[Any] = []
    for place, value in enumerate(x.tolist()):
        heapq.heappush(heap, (value, place))
    order = []
    while heap:
        value, place = heapq.heappop(heap)
        order.append(place)
        if value > 4:
            break
    return torch.tensor(order, dtype=torch.int64), len(heap)


def kept_largest(x: Tensor) -> Any:
    kept: list[Any] = []
    for value in x:
        if len(kept) < 3:
            heapq.heappush(kept, value)
        elif value > kept[0]:
            heapq.heapreplace(kept, value)
        else:
            x = x + heapq.heappushpop(kept, value) * 0
    return torch.stack(kept), x


def made_a_heap(x: Tensor) -> Any:
    heap = rows_of(x)
    heapq.heapify(heap)
    least = heapq.heappop(heap) if heap else x[0]
    return least, torch.stack([*heap, x[0]])


def shortest_paths(weights: Tensor) -> Any:
    count = 4
    distance = [math.inf] * count
    distance[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        length, node = heapq.heappop(heap)
        if length > distance[node]:
            continue
        for other in range(count):
            weight = float(weights[node, other])
            if weight > 0 and length + weight < distance[other]:
                distance[other] = length + weight
                heapq.heappush(heap, (length + weight, other))
    return torch.tensor(distance)


def inserted(x: Tensor) -> Any:
    kept: list[Any] = []
    for value in x:
        if value > -1.5:
            bisect.insort(kept, value)
    return torch.stack([*kept, x[0]])


@pytest.mark.slow_but_for("inserted")
@row(24)
@pytest.mark.parametrize("model", [sorted_by_heap, kept_largest, made_a_heap, inserted], ids=lambda m: m.__name__)
def test_heaps(model: Any) -> None:
    agree(model, [*VALUES, (torch.tensor([3.0, 1.0, 2.0, 9.0, -4.0, 2.5, 0.0]),)], (dyn(0),), paths=1)


def gone_over_twice(rows: list[Any], x: Tensor) -> Any:
    some = filter(lambda v: v > 1, rows)
    return len(list(some)) + len(list(some))


def changed_meanwhile(rows: list[Any], x: Tensor) -> Any:
    some = filter(lambda v: v > 1, rows)
    rows.append(x[0] + 10)
    return len(list(some))


def taken_in_part(rows: list[Any], x: Tensor) -> Any:
    iterator = iter(rows)
    return len(list(itertools.islice(iterator, 1))) + len(list(iterator))


def taken_between(rows: list[Any], x: Tensor) -> Any:
    iterator = iter(rows)
    total = x[0]
    for value in filter(lambda v: v > 1, iterator):
        total = total + value * next(iterator, x[0])
    return total


@pytest.mark.slow_for("taken_in_part", "gone_over_twice")
@row(24)
@pytest.mark.parametrize("use", [gone_over_twice, changed_meanwhile, taken_in_part, taken_between])
def test_iterators_are_used_once(use: Any) -> None:
    """Eager's give each element once, when it is asked for: what can't be as in eager is refused."""

    def model(x: Tensor) -> Any:
        return use(rows_of(x), x)

    assert refuses(model, VALUES[0], (dyn(0),)).code == "D2S232"


def in_displays(x: Tensor) -> Any:
    rows = rows_of(x)
    ints = [int(value) for value in rows]
    found = [x[0], *reversed(rows), *map(lambda v: v * 2, rows), *filter(None, rows), *(v + 1 for v in rows)]
    return torch.stack(found), len((0, *itertools.pairwise(rows))), len({*ints, 3}), next(itertools.chain([x[0]], rows))


@pytest.mark.slow
@row(24)
def test_displays_take_all_elements() -> None:
    agree(in_displays, VALUES, (dyn(0),), paths=1)


@pytest.mark.slow
@row(24)
def test_a_generator_expression_that_a_call_takes_apart_is_refused() -> None:
    def total(*values: Any) -> Any:
        return sum(values)

    def model(x: Tensor) -> Any:
        return total(*(value + 1 for value in rows_of(x)))

    assert refuses(model, VALUES[0], (dyn(0),)).code == "D2S232"


def topological(adjacency: Tensor) -> Any:
    count = 4
    waiting = adjacency.sum(0)
    ready = deque(node for node in range(count) if waiting[node] == 0)
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for other in range(count):
            if adjacency[node, other] > 0:
                waiting[other] -= 1
                if waiting[other] == 0:
                    ready.append(other)
    return torch.tensor(order, dtype=torch.int64), len(order) == count


@pytest.mark.slow
@row(24)
def test_a_topological_order() -> None:
    graphs = ([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], [[0, 1, 0, 0], [1, 0, 0, 0], [0] * 4, [0] * 4])
    agree(topological, [(torch.tensor(each),) for each in graphs], paths=1)


@pytest.mark.slow
@row(24)
def test_shortest_paths() -> None:
    generator = torch.Generator().manual_seed(1)
    graphs = [torch.randint(0, 5, (4, 4), generator=generator).float() for _ in range(4)]
    graphs.append(torch.tensor([[0.0, 4, 1, 0], [0, 0, 0, 1], [0, 1, 0, 9], [0, 0, 0, 0]]))
    agree(shortest_paths, [(each,) for each in graphs], paths=1)


def runs(x: Tensor) -> Any:
    signs = [(sign, sum(1 for _ in group)) for sign, group in itertools.groupby((x > 0).tolist())]
    sums = []
    for positive, group in itertools.groupby(enumerate(x.tolist()), key=lambda pair: pair[1] > 0):
        items = list(group)
        if positive:
            sums.append(sum((value for _, value in items), 0.0))
    return [length for _, length in signs], sums, [key for key, _ in itertools.groupby(x[:1].tolist())]


def kept_groups(x: Tensor) -> Any:
    groups = [group for _, group in itertools.groupby(x.tolist())]
    return [len(list(group)) for group in groups]


@row(24)
def test_groups() -> None:
    agree(runs, VALUES, (dyn(0),), paths=2)
    assert refuses(kept_groups, VALUES[0], (dyn(0),)).code == "D2S233"


def pairs_by_hand(x: Tensor) -> Any:
    values = iter(x.tolist())
    total = 0.0
    current = next(values, None)
    while current is not None:
        if current < 0:
            total += next(values, 10.0)
        current = next(values, None)
    return torch.tensor(total)


@row(24)
def test_next_with_a_default() -> None:
    agree(pairs_by_hand, VALUES, (dyn(0),), paths=2)
