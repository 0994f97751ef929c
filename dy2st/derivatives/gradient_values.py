"""Gradients of values, which may be there or not.

Eager gives a parameter that the loss does not depend on no gradient at all, and an optimiser leaves it and its state
alone. Whether it depends may be data: a layer that one arm of a branch uses, or a loop that may not run. So a gradient
is a tensor and whether it is there, which is True or a 0-d bool tensor of the graph; one that is not there is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dy2st.tracing.size_ops import sized_op
from dy2st.tracing.tracer import same_size


@dataclass(frozen=True)
class Gradient:
    """The derivative of the loss by a value, and whether there is one: True, or a 0-d bool tensor."""

    value: torch.Tensor
    there: Any = True

    def settled(self) -> Gradient:
        """The same, zero where it is not there: a derivative of zero times infinity is none."""
        if self.there is True:
            return self
        return Gradient(torch.where(self.there, self.value, torch.zeros_like(self.value)), self.there)

    def plus(self, other: Gradient) -> Gradient:
        """The sum of two contributions."""
        return Gradient(self.settled().value + other.settled().value, either([self.there, other.there]))

    def flag(self) -> torch.Tensor:
        """Whether it is there, as a tensor."""
        return flag(self.there)


def flag(there: Any) -> torch.Tensor:
    """Whether a gradient is there, as a 0-d bool tensor."""
    return there if isinstance(there, torch.Tensor) else torch.full([], there, dtype=torch.bool)


def either(there: Sequence[Any]) -> Any:
    """Whether one of several is there."""
    if any(each is True for each in there):
        return True
    found = there[0]
    for each in there[1:]:
        found = torch.logical_or(found, each)
    return found


def summed(one: Gradient | None, other: Gradient | None) -> Gradient | None:
    """The sum of what there is."""
    if one is None or other is None:
        return other if one is None else one
    return one.plus(other)


def fitted(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """``value`` with the sizes of ``like``: they are the same, but torch may not know it."""
    if all(map(same_size, value.shape, like.shape)):
        return value
    made: torch.Tensor = sized_op(value, like.shape)
    return made


def is_real(value: Any) -> bool:
    """Whether a value can have a gradient: a tensor of floats."""
    return isinstance(value, torch.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)
