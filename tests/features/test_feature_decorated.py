"""What decorators make of functions (row 40): wrappers, caches, managers, dispatch on types."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch
from harness import agree, dyn, outcomes, refuses, row
from torch import Tensor, nn

import dy2st

SIGNS = [(torch.tensor(v),) for v in ([1.0, 2.0, -0.5], [-1.0, -2.0], [0.1], [4.0, -3.5])]


def plus_one(function: Any) -> Any:
    """A decorator as users write it."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result + 1 if result.mean() > 0 else result

    return wrapper


def scaled_by(k: float) -> Any:
    """A decorator with an argument, as a class."""

    class Scaled:
        def __init__(self, function: Any) -> None:
            self.function = function
            functools.update_wrapper(self, function)

        def __call__(self, *args: Any) -> Any:
            result = self.function(*args)
            return result * k if result.sum() > 1 else result

    return Scaled


@functools.lru_cache
def triangle(n: int) -> Tensor:
    """A constant that is made once."""
    return torch.tril(torch.ones(n, n))


@functools.cache
def halved(x: Tensor) -> Tensor:
    """A cache on tensors."""
    return x / 2 if x.sum() > 0 else x


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """A manager that is used as a decorator."""
    yield


@plus_one
@torch.no_grad()
@functools.lru_cache
@logged()
@scaled_by(0.5)
@plus_one
def stacked(x: Tensor) -> Tensor:
    """Six decorators."""
    return x * 2 if x.sum() > 0 else -x


@functools.singledispatch
def described(value: Any) -> Any:
    """Chosen by type."""
    return value


@described.register
def _(value: torch.Tensor) -> Tensor:
    return value * 2 if value.sum() > 0 else value


class Decorated(nn.Module):
    """Decorated methods and cached properties."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.n = nn.Parameter(torch.tensor(2.0)), 3

    @functools.cached_property
    def scale(self) -> Tensor:
        """Computed once, by a branch."""
        return self.w * 2 if self.w > 0 else self.w

    @functools.cached_property
    def count(self) -> int:
        """Computed once, in Python."""
        return self.n + 1

    def shift(self, x: Tensor, k: float) -> Tensor:
        """What a partial method calls."""
        return x * k if x.sum() > 0 else x - k

    tripled = functools.partialmethod(shift, k=3.0)

    @plus_one
    @torch.inference_mode()
    def wrapped(self, x: Tensor) -> Tensor:
        """A decorated method."""
        return x * self.scale if x.max() > 1 else x

    def forward(self, x: Tensor) -> Tensor:
        k = self.scale
        if x.sum() > 0:
            x = x * self.scale + self.count
        return self.wrapped(self.tripled(x)) + k


@row(40)
def test_decorated_callees() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        mask = triangle(3)
        if x.sum() > 0:
            mask = triangle(3) * x.sum()
        return stacked(x) + halved(x) + halved(x) + described(x) + described(3), mask

    agree(model, SIGNS, (dyn(0),))
    assert type(triangle(3)) is Tensor, "the cache holds what eager code put there"
    agree(Decorated(), SIGNS, (dyn(0),), whole=False)

    class Late(Decorated):
        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                x = x * self.scale
            return x + self.scale

    agree(Late(), SIGNS, (dyn(0),), whole=False)


class Table:
    """Has properties that are computed when first read."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    @functools.cached_property
    def order(self) -> int:
        """A constant."""
        return 5

    @functools.cached_property
    def total(self) -> Tensor:
        """Of what there is when it is first read."""
        return self.x.sum()


@row(40)
def test_cached_properties_first_read_on_one_path() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        table, n = Table(x), 0
        while x.abs().sum() > 1:
            if x[0] > 2:
                x = x / table.order
            elif x[1] > 2:
                x = x - table.total
            else:
                x = x / 2
            n += 1
        table.x = table.x + 1
        return x * table.order + table.total, n

    rows = [[3.0, 1.0], [0.5, 5.0], [0.1, 0.2], [1.5, 0.0]]
    agree(model, [(torch.tensor(each),) for each in rows], paths=4)

    def changes(x: Tensor) -> Tensor:
        table = Table(x)
        if x[0] > 2:
            x = x - table.total
        table.total.add_(1)
        return x + table.total

    refuses(changes, SIGNS[0])


@row(40)
def test_caches_hold_nothing_of_a_capture() -> None:
    triangle.cache_clear()
    net = Decorated()
    dy2st.export(net, SIGNS[0])
    assert "scale" not in vars(net)

    def model(x: Tensor) -> Tensor:
        return x * triangle(2).sum() if x.sum() > 0 else x

    program = dy2st.export(model, SIGNS[0]).module()
    assert torch.equal(triangle(2) + 0, torch.tril(torch.ones(2, 2)))
    assert torch.equal(program(SIGNS[0][0]), model(SIGNS[0][0]))
    outcomes.append("Y")
