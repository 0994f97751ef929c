"""What a call of a class does: modules made inside the model, and classes whose metaclass has a ``__call__``."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, row
from torch import Tensor, nn

INPUTS = [
    (torch.ones(2), torch.tensor([1.0, 3.0])),
    (-torch.ones(2), torch.tensor([-1.0, 0.5])),
    (torch.ones(2), torch.tensor([-1.0, -4.0])),
]


class Scaling(nn.Module):
    def __init__(self, weight: Tensor, gain: float = 1.0) -> None:
        super().__init__()
        if weight.sum() > 0:
            weight, gain = weight * 2, gain + 1
        else:
            weight = weight - 1
        self.weight = weight
        self.register_buffer("bias", weight.abs())
        self.gain = gain

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight * self.gain + self.bias


class Nest(nn.Module):
    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.inner = Scaling(weight)
        self.apply(self._start)

    def _start(self, module: nn.Module) -> None:
        if isinstance(module, Scaling):
            module.gain = 3.0

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class Lifting(type):
    """Changes what an object is made of, and the object."""

    def __call__(cls, x: Any, *args: Any) -> Any:
        if x is None:
            return 5
        if x.sum() > 0:
            x = x + 1
        made = super().__call__(x, *args)
        made.x = made.x * 2
        return made


class Point(metaclass=Lifting):
    def __init__(self, x: Tensor, factor: int = 1) -> None:
        if x.max() > 2:
            self.x = x * factor
        else:
            self.x = x


def makes_a_module(weight: Tensor, x: Tensor) -> Tensor:
    return Scaling(weight)(x)


def makes_a_nest(weight: Tensor, x: Tensor) -> Tensor:
    return Nest(weight)(x)


def makes_some(weight: Tensor, x: Tensor) -> Tensor:
    return torch.stack([Scaling(weight, float(i))(x) for i in range(3)])


def makes_by_a_metaclass(weight: Tensor, x: Tensor) -> Tensor:
    return Point(x, 3).x + weight + Point(None)


@row(40)
@pytest.mark.parametrize("model", [makes_a_module, makes_a_nest, makes_some, makes_by_a_metaclass])
def test_what_makes_an_object_is_converted(model: Any) -> None:
    agree(model, INPUTS)


class Checked(nn.Module):
    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        if (weight < -5).any():
            raise ValueError("too small")
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight


@row(43)
def test_a_module_that_is_made_may_raise() -> None:
    def model(weight: Tensor, x: Tensor) -> Tensor:
        layer, rounds = Checked(weight), 0
        while x.sum() > 0 and rounds < 3:
            x = layer(x) - 2
            rounds += 1
        return x

    agree(model, INPUTS[:2], raising=[(torch.full((2,), -9.0), torch.ones(2))])
