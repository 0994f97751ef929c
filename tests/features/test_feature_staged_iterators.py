"""``iter``, ``next``, ``enumerate``, ``zip``, ``reversed`` and ``map`` over what has a data-dependent length.

The law: an iterator gives each element once. Where that can't be said in the graph, it is refused.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor
from torch.export import Dim

DYNAMIC = ({0: Dim.DYNAMIC},)


def rows(*sizes: int) -> list[tuple[Tensor]]:
    """Matrices of three columns."""
    generator = torch.Generator().manual_seed(1)
    return [(2 * torch.randn(size, 3, generator=generator),) for size in sizes]


class Counter:
    """Keeps a number."""

    n = 0

    def step(self, x: Tensor) -> Tensor:
        """A function of ``x`` and of how often it was called."""
        self.n += 1
        return x * self.n


def mean(values: Any, empty: Any = 0.0) -> Any:
    """The mean of what may be iterated, as segmentation losses have it."""
    values = iter(values)
    try:
        n = 1
        total = next(values)
    except StopIteration:
        return torch.as_tensor(empty)
    for n, value in enumerate(values, 2):  # noqa: B007  it is used behind the loop
        total = total + value
    if n == 1:
        return total
    return total / n


@pytest.mark.slow
@row(24, 33)
def test_the_first_element_is_taken_and_the_others_gone_over() -> None:
    def of_found(x: Tensor) -> tuple[Any, ...]:
        found = [r.sum() for r in x if r[0] > 0]
        return mean(found), len(found)

    def differences(x: Tensor) -> Any:
        following = iter(x)
        previous = next(following)
        made = []
        for r in following:
            made.append(r - previous)
            previous = r
        return torch.stack(made) if made else torch.zeros(0, 3)

    def of_pairs(x: Tensor) -> tuple[Any, ...]:
        pairs = zip(x, x * 2, strict=False)
        a, b = next(pairs)
        return a + b, torch.stack([x[0], *[p * q for p, q in pairs]]).sum(0)

    agree(of_found, [*rows(4, 2, 7, 5), (-torch.ones(2, 3),)], DYNAMIC)
    for model in (differences, of_pairs):
        agree(model, rows(4, 1, 7, 2), DYNAMIC, paths=1)


@pytest.mark.slow
@row(24, 33)
def test_the_place_of_an_iterator_is_state() -> None:
    def in_a_loop(x: Tensor) -> tuple[Any, ...]:
        following = iter(x)
        total = next(following)
        n = 1
        while n < x.shape[0] and total.sum() < 3:
            total = total + next(following).abs()
            n += 1
        return total, n, torch.stack([total, *[r * 2 for r in following]]).sum(0)

    def in_a_branch(x: Tensor) -> Tensor:
        following = iter(x)
        if x[0, 0] > 0:
            next(following)
        return next(following) * 2

    def in_both_arms(x: Tensor) -> Tensor:
        numbered = enumerate(x)
        if x.sum() > 0:
            return torch.stack([r * i for i, r in numbered])
        return torch.stack([r - i for i, r in numbered])

    for model in (in_a_loop, in_a_branch, in_both_arms):
        agree(model, [*rows(4, 2, 7, 5, 3), (torch.ones(3, 3),), (-torch.ones(3, 3),)], DYNAMIC)


@row(24, 33)
def test_next_of_nothing_raises() -> None:
    def model(x: Tensor) -> Tensor:
        found = iter([r for r in x if r[0] > 0])
        return next(found) + next(found)

    some, none = torch.ones(3, 3), -torch.ones(3, 3)
    agree(model, [(some,), (torch.cat([none, some * 2]),)], DYNAMIC, paths=1, raising=[(none,)])


@pytest.mark.slow
@row(24, 33)
def test_what_has_been_gone_over_is_not_used_again() -> None:
    def twice(x: Tensor) -> Tensor:
        numbered = enumerate(x)
        total = torch.zeros(3)
        for _, r in numbered:
            total = total + r
        for _, r in numbered:
            total = total + r * 100
        return total

    def twice_by_comprehensions(x: Tensor) -> tuple[Any, ...]:
        pairs = zip(x, x, strict=False)
        first = [p + q for p, q in pairs]
        return torch.stack(first), len([p for p, _ in pairs])

    def each_time(x: Tensor) -> Tensor:
        following = reversed([r * 2 for r in x])
        total = torch.zeros(())
        for r in x:
            total = total + sum([r.sum() * q.sum() for q in following], torch.zeros(()))
        return total

    def left_half_way(x: Tensor) -> Tensor:
        following = iter(x)
        total = torch.zeros(3)
        for r in following:
            total = total + r
            if r.sum() > 0:
                break
        return total + next(following)

    def in_pairs(x: Tensor) -> Tensor:
        following = iter(x)
        return torch.stack([a + b for a, b in zip(following, following, strict=False)])

    def appended(x: Tensor) -> Any:
        found = [r * 2 for r in x]
        following = iter(found)
        found.append(x[0])
        return torch.stack([r + 1 for r in following])

    for model in (twice, twice_by_comprehensions, each_time, left_half_way, in_pairs, appended):
        assert refuses(model, rows(4)[0], DYNAMIC).code == "D2S232"


@pytest.mark.slow
@row(24, 47)
def test_map_calls_its_function_where_an_element_is_taken() -> None:
    def lists(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        return torch.cat(list(map(lambda r: counter.step(r)[None], x))), counter.n  # noqa: C417

    def loops(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        total = torch.zeros(3)
        for r in map(counter.step, x):
            total = total + r
            if total.sum() > 4:
                break
        return total, counter.n

    def builtins(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        found = any(map(lambda r: counter.step(r).sum() > 3, x))  # noqa: C417
        largest = max(map(torch.sum, x))
        return found, counter.n, largest, torch.stack(tuple(map(torch.neg, x))), sum(range(x.shape[0]))

    for model in (lists, loops, builtins):
        agree(model, rows(4, 2, 7, 5), DYNAMIC, paths=1)
