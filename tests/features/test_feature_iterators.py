"""Who asks for which elements: ``any`` and ``all``, ``:=`` in generator expressions, iterators left half-way."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor
from torch.export import Dim

INPUTS = [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, 0.5, 0.5], [2.0, 2.5, -1.0, 0.5], [3.0, -3.0, 0.25])]
DYNAMIC = ({0: Dim.DYNAMIC},)


@dataclass
class Detector:
    """Counts what it was asked, and keeps the last."""

    asked: int = 0
    last: Tensor = field(default_factory=lambda: torch.zeros(()))
    log: list[Tensor] = field(default_factory=list)

    def sees(self, x: Tensor) -> Any:
        """Whether ``x`` is large."""
        self.asked += 1
        self.last = x
        self.log.append(x * 2)
        return x > 2


@pytest.mark.slow
@row(32, 47, 30)
def test_any_and_all_ask_for_no_more_than_they_need() -> None:
    def calls(x: Tensor) -> tuple[Any, ...]:
        d = Detector()
        found = any(d.sees(e) for e in (x[0], x[1], x.max()))
        return found, d.asked, d.last, len(d.log)

    def not_all(x: Tensor) -> tuple[Any, ...]:
        d = Detector()
        fine = all(not d.sees(e) for e in (x[0], x[1], x.max()))
        if fine or any(map(d.sees, (x[0], x[2]))):
            return fine, d.asked, d.last
        return True, -d.asked, d.last * 2

    def nested(x: Tensor) -> tuple[Any, ...]:
        d = Detector()
        pairs = all(d.sees(a - b) or a < 2 for a in (x[0], x[1]) for b in (x[1], x[2]))
        within = any(d.sees(a) and all(d.sees(b) for b in (x[0], x[2])) for a in (x[0], x[1]))
        return pairs, within, d.asked, d.last

    def in_loops(x: Tensor) -> tuple[Any, ...]:
        d = Detector()
        n = 0
        for i in range(3):
            if any(d.sees(e + i) for e in (x[0], x[1])):
                break
        while n < 4 and not any(d.sees(e + n) for e in (x[1], x[2])):
            n += 1
        return d.asked, d.last, n

    def lists(x: Tensor) -> tuple[Any, ...]:
        rows: list[Tensor] = []
        found = any(rows.append(e) or e > 2 for e in (x[0], x[1], x[2]))
        held = [x[0], x[1], x[2]]
        popped = all(held.pop() > 0 for _ in range(3))
        y = x.clone()
        written = any(y.add_(e)[0] > 2 for e in (x[0], x[1]))
        return found, len(rows), popped, len(held), written, y

    for model in (calls, not_all, nested, in_loops, lists):
        agree(model, INPUTS, DYNAMIC)


@row(43, 47)
def test_elements_behind_the_one_that_decides_do_not_fail() -> None:
    def safe(x: Tensor) -> Tensor:
        if x < -2.5:
            raise ValueError("too small")
        return x > 0

    def model(x: Tensor) -> tuple[Any, ...]:
        return any(safe(e) for e in (x[0], x[1], x[2])), x

    given = [*INPUTS, (torch.tensor([1.0, -3.0, -3.0]),)]
    agree(model, given, DYNAMIC, raising=[(torch.tensor([-1.0, -3.0, 1.0]),)])

    def over_rows(x: Tensor) -> tuple[Any, ...]:
        return any(safe(e) for e in x), x

    agree(over_rows, given, DYNAMIC, raising=[(torch.tensor([-1.0, -3.0, 1.0]),)])


class Counting:
    """Its truth changes it."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __bool__(self) -> bool:
        self.x = self.x + 1
        return bool(self.x > 2)


@row(41, 47)
def test_objects_whose_truth_changes_them() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        made = [Counting(x[0]), Counting(x[1]), Counting(x[2])]
        return any(made), *(each.x for each in made)

    agree(model, INPUTS, DYNAMIC)


@row(32, 47)
def test_conditions_of_generator_expressions() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        d = Detector()
        first = any(e > 1 for e in (x[0], x[1], x[2]) if e != 3)
        second = all(e > 0 for e in (x[0], x[1], x[2]) if e > -1)
        third = any(d.sees(e) for i, e in enumerate((x[0], x[1], x[2])) if i != 1)
        return first, second, third, d.asked

    agree(model, INPUTS, DYNAMIC)


@row(51, 32)
def test_the_witness_of_any() -> None:
    def witness(x: Tensor) -> tuple[Any, ...]:
        found = x[0] * 0
        if any((found := e) > 2 for e in (x[0], x[1], x[2])):
            return found, 1
        return found * 2, 0

    def counterexample(x: Tensor) -> tuple[Any, ...]:
        at = -1
        fine = all(x[(at := i)] > 0 for i in range(3))
        return fine, at

    def later(x: Tensor) -> tuple[Any, ...]:
        seen = x[0] * 0
        doubled = ((seen := e * 2) for e in (x[0], x[1], x[2]))
        if x.sum() > 0:
            next(doubled)
        return seen, x

    def kept(x: Tensor) -> tuple[Any, ...]:
        large = [y for e in (x[0], x[1], x[2]) if (y := e * 2) > 1]
        return len(large), y, sum(large, x[0])

    for model in (witness, counterexample, later, kept):
        agree(model, INPUTS, DYNAMIC)


@row(32)
def test_names_bound_behind_a_condition() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        last = x[0]
        large = [(last := e) for e in (x[0], x[1], x[2]) if e > 1]
        return len(large), last

    agree(model, INPUTS, DYNAMIC)


@row(33, 47)
def test_any_of_a_generator_function() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        rows: list[Tensor] = []
        last = x[0]

        def totals() -> Iterator[Any]:
            nonlocal last
            total = x[0] * 0
            for e in (x[0], x[1], x[2]):
                last = e
                total = total + e
                rows.append(total)
                yield total > 2
            rows.append(x[0])

        return any(totals()), len(rows), last

    agree(model, INPUTS, DYNAMIC)


def half(x: Tensor) -> Iterator[Tensor]:
    """An iterator that one path alone has advanced."""
    left = iter((x[0], x[1], x[2]))
    for e in left:
        if e > 2:
            break
    return left


def comprehension(x: Tensor) -> Any:
    return [e * 2 for e in half(x)]


def star(x: Tensor) -> Any:
    return torch.stack([x[0], *half(x)])


def unpacking(x: Tensor) -> Any:
    (*rest,) = half(x)
    return len(rest)


def how_many(*given: Tensor) -> int:
    return len(given)


def arguments(x: Tensor) -> Any:
    return how_many(*half(x))


def extended(x: Tensor) -> Any:
    rows = [x[0]]
    rows.extend(half(x))
    return len(rows)


def added(x: Tensor) -> Any:
    rows = [x[0]]
    rows += half(x)
    return len(rows)


def sliced(x: Tensor) -> Any:
    rows = [x[0]]
    rows[:] = half(x)
    return len(rows)


def zipped(x: Tensor) -> Any:
    return [b for _, b in zip(range(3), half(x), strict=False)]


def counted(x: Tensor) -> Any:
    return sum(1 for _ in half(x))


def generated(x: Tensor) -> Any:
    doubled = (e * 2 for e in (x[0], x[1], x[2]))
    if x.sum() > 0:
        next(doubled)
    rows = [x[0]]
    rows.extend(doubled)
    return len(rows)


def decided(x: Tensor) -> Any:
    left = iter((x[0], x[1], x[2]))
    return any(e > 1 for e in left), len(list(left))


def copied(x: Tensor) -> Any:
    left = iter((x[0], x[1], x[2]))
    return next(copy.copy(left)) + next(left)


ADVANCED_AGAIN = [
    comprehension,
    star,
    unpacking,
    arguments,
    extended,
    added,
    sliced,
    zipped,
    counted,
    generated,
    decided,
    copied,
]


@row(7, 33)
@pytest.mark.parametrize("model", ADVANCED_AGAIN, ids=lambda model: model.__name__)
def test_iterators_left_half_way_on_one_path_are_refused(model: Callable[[Tensor], Any]) -> None:
    assert refuses(model, INPUTS[0], DYNAMIC).code == "D2S232"


@row(7, 12)
def test_iterators_that_all_paths_advance_alike() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        left = iter((x[0], x[1], x[2]))
        first = next(left)
        pairs = [(a, b) for a, b in zip(left, left, strict=False)]
        named = dict(zip("abc", (x[0], x[1], x[2]), strict=True))
        total = first + sum(named.values())
        for e in iter(named.values()):
            if e > 2:
                break
            total = total + e
        kinds = isinstance(enumerate(()), enumerate), isinstance(zip((), (), strict=True), zip)
        return total, pairs[0][1], *kinds, *reversed((x[0], x[1]))

    agree(model, INPUTS, DYNAMIC)


@row(33, 42, 44)
def test_generators_that_clean_up_where_they_are_deleted_are_refused() -> None:
    def cleans(x: Tensor) -> Any:
        rows: list[Tensor] = []

        def elements() -> Iterator[Tensor]:
            try:
                yield from (x[0], x[1], x[2])
            finally:
                rows.append(x[0])

        for e in elements():
            if e > 2:
                break
        return len(rows)

    def manages(x: Tensor) -> Any:
        def elements() -> Iterator[Tensor]:
            with torch.no_grad():
                for e in (x[0], x[1], x[2]):
                    yield e > 2

        return any(elements())

    for model in (cleans, manages):
        assert refuses(model, INPUTS[0], DYNAMIC).code == "D2S232"


@row(33, 42)
def test_generators_that_clean_up_at_their_end() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        rows: list[Tensor] = []

        def elements(n: int) -> Iterator[Tensor]:
            try:
                yield from (x[0], x[1], x[2])[:n]
            finally:
                rows.append(x[0])

        total = sum(elements(3), x[0])
        for e in elements(2):
            total = total + e
            if total.shape == ():
                continue
            break
        return total, len(rows)

    agree(model, INPUTS, DYNAMIC, paths=1, whole=False)


@row(4, 12, 48)
def test_sizes_computed_in_iterations_that_may_be_left() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        size = half = 0
        for i in range(3):
            if x.dim() > 2:
                break
            size = min(x.shape[0] * 2 + i, 9)
            half = size // 2
        return size, half

    agree(model, INPUTS, DYNAMIC, paths=1, whole=False)
    agree(lambda x: model(x)[0] * x, INPUTS, DYNAMIC, paths=1, whole=False)


@pytest.mark.slow
@row(32, 33)
def test_iterators_advanced_in_a_comprehension_over_a_tensor() -> None:
    def counter(x: Tensor) -> Any:
        number = itertools.count()
        return torch.stack([e * next(number) for e in x])

    def generator(x: Tensor) -> Any:
        def numbers() -> Iterator[int]:
            yield from range(10)

        left = numbers()
        return torch.stack([e * next(left) for e in x])

    def expression(x: Tensor) -> Any:
        left = (i for i in range(10))
        return torch.stack([e * sum(left) for e in x])

    for model in (counter, generator, expression):
        assert refuses(model, INPUTS[0], DYNAMIC).code == "D2S232"

    def inside(x: Tensor) -> Any:
        def twice(e: Tensor) -> Iterator[Tensor]:
            yield e
            yield e * 2

        rows = [sum(twice(e), e) + sum(a * b for a, b in zip((e, 1), (2, e), strict=True)) for e in x]
        return torch.stack(rows), sum((e * i for i, e in enumerate(x)), x[0])

    agree(inside, INPUTS, DYNAMIC, paths=1)


@row(24, 48)
def test_a_length_of_three_parts() -> None:
    def model(x: Tensor) -> Tensor:
        if x[1] > 0:
            rows: list[Any] = [1]
            all((e and rows.append(e)) for e in (x.max(), x.sum()))
            if x.sum() > 0:
                return 2.0 + torch.zeros(1)
        return torch.ones(1)

    agree(model, [*INPUTS, (torch.tensor([-9.0, 1.0, 2.0]),)], DYNAMIC)


@row(47, 36)
def test_methods_of_containers_given_as_functions() -> None:
    def model(x: Tensor) -> Any:
        rows: list[Tensor] = []
        grow = operator.methodcaller("append", x[1])
        each = map(rows.append, (x[0], x[1]))
        if x.sum() > 0:
            list(each)
        if x[0] > 1.5:
            grow(rows)
        kept = [*map(rows.append, (x[2],))] if x[1] > 0 else [None]
        return len(rows), sum(rows, x[0]), len(kept)

    agree(model, INPUTS, DYNAMIC)


@row(32, 33)
def test_the_next_of_a_list_of_data_dependent_length() -> None:
    def model(x: Tensor) -> Tensor:
        found = []
        for i in range(3):
            if x[i] > 0:
                found.append(x[i] * 2)  # noqa: PERF401  a loop is what this is about
        values = iter(found)
        total = next(values)
        for value in values:
            total = total + value
        return total

    given = [(torch.tensor(v),) for v in ([1.0, -1.0, 2.0], [-1.0, -1.0, 3.0], [1.0, 2.0, 3.0])]
    agree(model, given, raising=[(torch.tensor([-1.0, -1.0, -2.0]),)])
