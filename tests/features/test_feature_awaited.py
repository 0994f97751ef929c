"""Exceptions that Python itself waits for: the end of an iteration, an attribute that is not there (rows 7, 41, 44)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

INPUTS = [(torch.tensor(v),) for v in ([-2.0, 2.5, -2.25], [2.75, -0.25], [-1.75], [0.0, 1.0, 2.0, 3.0])]


class Multiples:
    """Its ``__next__`` raises at the end, which Python decides."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.i = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Tensor:
        if self.i >= 4:
            raise StopIteration
        self.i += 1
        return self.x * self.i


class Numbered:
    """Python iterates it by subscripts; a lookup of what it has not fails in ``__getattr__``."""

    def __init__(self, x: Tensor) -> None:
        self.held = [x, x * 2, x - 1]

    def __getitem__(self, i: int) -> Tensor:
        return self.held[i]

    def __getattr__(self, name: str) -> Any:
        if name == "first":
            return self.held[0]
        raise AttributeError(name)


class Listed(Sequence[Tensor]):
    """Its iteration is the standard library's."""

    def __init__(self, x: Tensor) -> None:
        self.held = [x, -x]

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, i: Any) -> Any:
        return self.held[i]


@functools.total_ordering
class Least:
    """Of its comparisons one is its own."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __lt__(self, other: Least) -> bool:
        return self.x < other.x  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Least) and self.x == other.x  # type: ignore[return-value]

    __hash__ = None  # type: ignore[assignment]


def ended(x: Tensor) -> tuple[Any, ...]:
    total = x * 0
    for y in Multiples(x):
        if y.sum() > 4:
            break
        total = total + y
    if x[0] > 0:
        for y in Multiples(x):
            total = total + y
        total = total + sum(Multiples(x)) + (1 if hasattr(Numbered(x), "last") else 2)
    for y in Numbered(x):
        total = total + y
    for y in Listed(x):
        total = total * 2 + y
    return total, getattr(Numbered(x), "last", x + 1), Numbered(x).first, next(Multiples(x), None)


def ordered(x: Tensor) -> tuple[int, ...]:
    a, b = Least(x[0]), Least(x.mean())
    return (1 if a <= b else 0), (1 if a >= b else 0), (1 if a < b else 0)


@row(7, 41, 44)
@pytest.mark.parametrize("model", [ended, ordered])
def test_what_python_waits_for_is_no_error(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, (dyn(0),), whole=False)


class Found:
    """What it raises a tensor decides."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.i = 0

    def __iter__(self) -> Iterator[Tensor]:
        return self  # type: ignore[return-value]

    def __next__(self) -> Tensor:
        self.i += 1
        if self.x.sum() * self.i > 6 or self.i > 5:
            raise StopIteration
        return self.x * self.i

    @property
    def positive(self) -> Tensor:
        if self.x.sum() < 0:
            raise AttributeError
        return self.x


class Grown:
    """How long its list is a tensor decides."""

    def __init__(self, x: Tensor) -> None:
        self.held = [x]
        if x.sum() > 0:
            self.held.append(x * 2)

    def __getitem__(self, i: int) -> Tensor:
        return self.held[i]


def until_it_is_found(x: Tensor) -> Tensor:
    total = x * 0
    for y in Found(x):
        total = total + y
    return total


def the_next(x: Tensor) -> Any:
    return next(Found(x), x * 7)


def with_a_default(x: Tensor) -> Any:
    return getattr(Found(x), "positive", x * 2)


def whether_it_is_there(x: Tensor) -> bool:
    return hasattr(Found(x), "positive")


def by_subscripts(x: Tensor) -> Tensor:
    total = x * 0
    for y in Grown(x):
        total = total + y
    return total


@row(7, 41, 44)
@pytest.mark.parametrize("model", [until_it_is_found, the_next, with_a_default, whether_it_is_there, by_subscripts])
def test_where_a_tensor_decides_what_python_waits_for_it_is_refused(model: Callable[..., Any]) -> None:
    error = refuses(model, INPUTS[0], (dyn(0),))
    assert error.code == "D2S236"
    assert "Python waits for it" in str(error)
