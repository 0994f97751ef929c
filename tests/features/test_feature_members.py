"""Properties and special methods, which Python calls itself: of objects made inside, held, global or passed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from harness import agree, dyn, row
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
