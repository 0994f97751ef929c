"""Generator functions (row 33): what Python can run alone converts; what a tensor decides about is refused."""

# ruff: noqa: SIM108 - the constructs under test are written as users write them
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from harness import agree, agree_or_refuse, both_signs, dyn, refuses, row, vectors
from torch import Tensor, nn

from dy2st.errors import GeneratorError


@row(33)
def test_generator_functions() -> None:
    def pieces(x: Tensor, size: int) -> Iterator[Tensor]:
        for start in range(0, 4, size):
            yield x[start : start + size]

    def plain(x: Tensor) -> Tensor:
        total = torch.zeros(2)
        for piece in pieces(x, 2):
            if piece.sum() > 0:
                total = total + piece
        return total

    agree_or_refuse(plain, both_signs(4))

    def positive(x: Tensor) -> Iterator[Tensor]:
        for element in x:
            if element > 0:
                yield element

    def staged(x: Tensor) -> Tensor:
        total = torch.zeros(())
        for element in positive(x):
            total = total * 0.5 + element
        return total

    agree_or_refuse(staged, vectors(3, 1, 2, 5), (dyn(0),))


SIGNS = [(torch.tensor(v),) for v in ([1.0, 2.0, -0.5], [-1.0, -2.0], [0.1], [4.0, -3.5])]


@row(33)
def test_generators_that_python_can_run() -> None:
    def pieces(x: Tensor, size: int) -> Iterator[Tensor]:
        for start in range(0, 4, size):
            piece = x[start : start + size]
            yield piece * 2 if piece.sum() > 0 else piece

    def running(values: Any) -> Any:
        total = torch.zeros(2)
        for value in values:
            if value.sum() > 0:
                total = total + value
            got = yield total
            if got is not None:
                total = total * got
        return total

    def both(x: Tensor) -> Any:
        yield from pieces(x, 2)
        last = yield from running(pieces(x, 2))
        yield last - 1

    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        total = torch.zeros(2)
        for piece in both(x):
            if piece.sum() > 1:
                total = total + piece
        stacked = torch.stack(list(pieces(x, 2))) + sum(p.mean() for p in pieces(x, 1))
        steps = running(pieces(x, 2))
        first = next(steps)
        return total, stacked, first + steps.send(3.0)

    agree(model, vectors(4, 4, 4, 4, scale=2.0), paths=3, whole=False)


@row(33, 29)
def test_generators_that_change_state() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def lines(self, x: Tensor, n: int) -> Iterator[Tensor]:
            """Yields, and counts in a buffer, also where the consumer leaves early."""
            for i in range(n):
                self.seen = self.seen + x[i].sum()
                yield x[i] * self.seen

        def forward(self, x: Tensor) -> Tensor:
            total = torch.zeros(3)
            for line in self.lines(x, 3):
                total = total + line
                if total.sum() > 4:
                    break
            if x.sum() > 0:
                for line in self.lines(x, 2):
                    total = total - line
            return total

    agree(Model(), [(scale * torch.randn(3, 3),) for scale in (1.0, 4.0, -2.0, 0.1)] + [(torch.ones(3, 3),)], paths=3)


@row(33)
def test_generators_whose_steps_depend_on_a_tensor() -> None:
    def positive(x: Tensor) -> Iterator[Tensor]:
        for element in x:
            if element > 0:
                yield element

    def until(x: Tensor) -> Iterator[Tensor]:
        while x.sum() < 9:
            x = x + 1
            yield x

    def early(x: Tensor) -> Iterator[Tensor]:
        if x.sum() > 0:
            return
        yield x

    for generator in (positive, until, early):

        def model(x: Tensor, generator: Any = generator) -> Tensor:
            total = torch.zeros(())
            for element in generator(x):
                total = total * 0.5 + element.sum()
            return total

        agree(model, SIGNS, (dyn(0),), paths=1)


@row(33)
def test_iterators_advance_on_one_path_only() -> None:  # noqa: C901
    def whole(x: Tensor) -> Tensor:
        steps = iter([1.0, 2.0, 3.0])
        if x.sum() > 0:
            for step in steps:
                x = x * step
        return x + 1

    agree(whole, SIGNS, (dyn(0),))

    def arm_and_after(x: Tensor) -> Tensor:
        steps = iter([1.0, 2.0, 3.0])
        if x.sum() > 0:
            x = x * next(steps)
        return x + next(steps)

    def both_arms(x: Tensor) -> Tensor:
        steps = zip([1.0, 2.0], [3.0, 4.0], strict=True)
        if x.sum() > 0:
            x = x + list(steps)[0][1]  # noqa: RUF015
        return x + len(list(steps))

    def trips(x: Tensor) -> Tensor:
        steps = (k * 2 for k in range(9))
        while x.sum() < 10:
            for step in steps:
                x = x + step
                break
        return x

    def generator_in_arms(x: Tensor) -> Tensor:
        def values() -> Iterator[float]:
            yield 1.0
            yield 2.0

        steps = values()
        if x.sum() > 0:
            x = x * next(steps)
        else:
            x = x - next(steps)
        return x

    for model in (arm_and_after, both_arms, trips, generator_in_arms):
        assert isinstance(refuses(model, SIGNS[0]), GeneratorError)


def kept(x: Tensor) -> Iterator[tuple[int, Tensor]]:
    for place, value in enumerate(x):
        if value > 0:
            yield place, value


def twice(x: Tensor) -> Iterator[tuple[int, Tensor]]:
    yield from kept(x)
    yield from kept(-x)


class Kept:
    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __iter__(self) -> Iterator[Tensor]:
        for _, value in kept(self.x):
            yield value


def left_early(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for place, value in kept(x):
        if value > 1.5:
            break
        total = total + value * (place + 1)
    return total


def taken_by_builtins(x: Tensor) -> Any:
    greatest = max(kept(x), key=lambda pair: pair[1], default=None)
    places = [place for place, _ in kept(x)]
    steps = kept(x)
    first = next(steps, None)
    rest = sum((value for _, value in steps), torch.zeros(()))
    return -1 if greatest is None else greatest[0], places, -1 if first is None else first[0], rest


def delegated(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for number, (place, value) in enumerate(twice(x)):
        total = total + (number + 1) * value * place
    for value in Kept(x):
        total = total + value
    return total


def flood(x: Tensor) -> Any:
    seen = torch.zeros(x.shape[0], dtype=torch.bool)

    def beside(place: int) -> Iterator[int]:
        for other in (place - 1, place + 1):
            if 0 <= other < x.shape[0] and x[other] > 0:
                yield other

    waiting = [0]
    seen[0] = True
    while waiting:
        place = waiting.pop()
        for other in beside(place):
            if not seen[other]:
                seen[other] = True
                waiting.append(other)
    return seen


@pytest.mark.slow_for("flood")
@row(33)
@pytest.mark.parametrize("model", [left_early, taken_by_builtins, delegated, flood])
def test_what_generators_yield_under_a_condition(model: Any) -> None:
    agree(model, SIGNS, (dyn(0),), paths=1)


def changed_by_the_loop(x: Tensor) -> Tensor:
    x = x.clone()
    total = torch.zeros(())

    def free() -> Iterator[int]:
        for place in range(x.shape[0]):
            if x[place] > 0:
                yield place

    for place in free():
        total = total + place
        x[(place + 1) % x.shape[0]] = 1
    return total


def bound_anew_by_the_loop(x: Tensor) -> float:
    limit = 0.0

    def above() -> Iterator[float]:
        for value in x.tolist():
            if value > limit:
                yield value

    total = 0.0
    for value in above():
        total += value
        limit = value
    return total


def seen_by_the_loop(x: Tensor) -> int:
    met = []

    def noted() -> Iterator[float]:
        for value in x.tolist():
            if value > 0:
                met.append(value)
                yield value

    for _ in noted():
        if len(met) > 1:
            break
    return len(met)


@row(33)
@pytest.mark.parametrize("model", [changed_by_the_loop, bound_anew_by_the_loop, seen_by_the_loop])
def test_generators_and_loops_that_see_each_others_changes_are_refused(model: Any) -> None:
    error = refuses(model, SIGNS[0], (dyn(0),))
    assert isinstance(error, GeneratorError)
    assert "change" in str(error)
