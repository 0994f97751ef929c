"""Properties and special methods, which Python calls itself: of objects made inside, held, global or passed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor, nn


class Scale:
    """Plain, with a property and operators that look at tensors."""

    def __init__(self, by: Tensor) -> None:
        self.by = by

    @property
    def sign(self) -> int:
        return 1 if self.by > 0 else -1

    def __add__(self, other: Tensor) -> Tensor:
        if other.sum() > 0:
            return other + self.by
        return other - self.by


@dataclass
class Vector:
    """A dataclass with operators."""

    x: Tensor

    @property
    def side(self) -> int:
        return 1 if self.x.sum() > 0 else 2

    def __mul__(self, k: float) -> Vector:
        if self.x.sum() > 0:
            return Vector(self.x * k)
        return Vector(self.x - k)

    def __lt__(self, other: Vector) -> Any:
        return self.x.sum() < other.x.sum()


class Pair(NamedTuple):
    """A named tuple with a property."""

    x: Tensor
    by: float

    @property
    def larger(self) -> Tensor:
        return self.x if self.x.sum() > self.by else -self.x


DOWN = Scale(torch.tensor(-2.0))
VECTORS = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0])]


@row(41)
def test_of_objects_that_are_made_inside() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        first = Vector(x) * 3.0
        second = Vector(x + 1)
        if first < second:
            first = second
        return first.x, first.side, Pair(x, 2.0).larger

    agree(model, VECTORS, (dyn(0),), whole=False)


@row(41)
def test_of_objects_that_are_held() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.tensor(1.0))

        @property
        def gain(self) -> Tensor:
            return self.weight * 2 if self.weight > 0 else self.weight

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("by", torch.tensor(1.0))
            self.scales = {"up": [Scale(self.by)]}
            self.inner = Inner()

        def forward(self, x: Tensor) -> Tensor:
            up = self.scales["up"][0]
            return (up + x) * up.sign * self.inner.gain

    agree(Model().eval(), VECTORS, (dyn(0),))


@row(41)
def test_of_globals_and_closures() -> None:
    up = Scale(torch.tensor(3.0))

    def shifted(x: Tensor) -> Tensor:
        return DOWN + (up + x)

    def model(x: Tensor) -> Tensor:
        return shifted(x) * up.sign * DOWN.sign

    agree(model, VECTORS, (dyn(0),))


class Statistics:
    """Its objects have their own attributes only once these are changed."""

    total: Any = 0.0
    best: Any = None
    seen = 0

    def see(self, value: Tensor) -> None:
        self.total = self.total + value
        self.seen += 1
        if self.best is None or value > self.best:
            self.best = value

    @property
    def mean(self) -> Any:
        return self.total / max(self.seen, 1)

    def scaled(self, x: Tensor) -> Tensor:
        return x * 2


def of_the_class(x: Tensor) -> tuple[Any, ...]:
    found, other = Statistics(), Statistics()
    for value in x:
        if value > -1:
            found.see(value)
    if x.sum() > 2:
        other.seen = 7
        other.scaled = lambda x: x + 1  # type: ignore[method-assign]
    if x.sum() < 0 and hasattr(found, "seen"):
        found.seen += 1
        del found.seen
    best = -1.0 if found.best is None else found.best
    return found.mean + 0.0 * x.sum(), found.seen, best, other.seen, other.scaled(x), Statistics.seen


@row(29, 41)
def test_attributes_of_the_class_until_the_object_has_its_own() -> None:
    values = [[1.0, 2.0, -3.0], [-1.0, -2.0], [4.0, -0.6, 0.2, -1.0], [0.5], [-0.5]]
    agree(of_the_class, [(torch.tensor(v),) for v in values], (dyn(0),), paths=5)


@row(29, 41)
def test_a_modules_class_gives_what_forward_changes() -> None:
    class Model(nn.Module):
        calls = 0
        last: Any = None

        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            for value in x:
                if value > 0:
                    self.calls += 1
                    self.last = value
            return x if self.last is None else x * self.last, self.calls

    model = Model()
    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0], [-1.0, -2.0], [4.0, -0.6, 0.2])], (dyn(0),), paths=3)
    assert "calls" not in vars(model)
    assert "last" not in vars(model)


@row(29, 41)
@pytest.mark.parametrize("change", [lambda cls: setattr(cls, "seen", 3), lambda cls: delattr(cls, "seen")])
def test_a_class_that_changes_after_its_object_is_refused(change: Callable[[Any], None]) -> None:
    class Changed(Statistics):
        seen = 1

    def model(x: Tensor) -> Tensor:
        found = Changed()
        if x.sum() > 0:
            found.seen = 2
        change(Changed)
        return x * found.seen

    assert refuses(model, (torch.ones(2),)).code == "D2S205"
    assert Changed.seen == 1
