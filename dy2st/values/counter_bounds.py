"""What is known of a staged int: how far a loop's counter, times a factor and moved, can go.

Source: affine access functions of loop nests (Feautrier, Dataflow analysis of array and scalar references, 1991).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from dy2st.tracing.tracer import at_least, same_size


@dataclass(frozen=True)
class Origin:
    """An int that is ``root * scale + offset``, with ``0 <= root < below`` unless that is None.

    ``scale``, ``offset`` and ``below`` are ints or symbolic ints.
    """

    root: torch.Tensor
    scale: Any = 1
    offset: Any = 0
    below: Any = None

    def lies_in(self, size: Any, *, length: Any = 1) -> bool:
        """Whether it and the ``length - 1`` ints after it are known to be at least 0 and less than ``size``."""
        return self.not_negative() and self._is_last(size - self.offset - length)

    def not_negative(self) -> bool:
        """Whether it is known to be at least 0."""
        if self.below is None:
            return False
        if at_least(self.scale, 0):
            return at_least(self.offset, 0)
        return at_least(-self.scale, 0) and at_least(self._span() + self.offset, 0)

    def _is_last(self, greatest: Any) -> bool:
        """Whether ``root * scale`` is known to be at most ``greatest``."""
        if at_least(self.scale, 0):
            return at_least(greatest - self._span(), 0)
        return at_least(-self.scale, 0) and at_least(greatest, 0)

    def _span(self) -> Any:
        return (self.below - 1) * self.scale

    def moved(self, name: str, value: Any) -> Origin | None:
        """The origin of ``self + value``, ``self - value`` or ``self * value``; None for what is not known so."""
        if isinstance(value, bool) or not isinstance(value, (int, torch.SymInt)):
            return None
        if name == "mul":
            return replace(self, scale=self.scale * value, offset=self.offset * value)
        if name in ("add", "sub"):
            return replace(self, offset=self.offset + value if name == "add" else self.offset - value)
        return None

    def subtracted_from(self, value: Any) -> Origin | None:
        """The origin of ``value - self``."""
        negative = self.moved("mul", -1)
        return None if negative is None else negative.moved("add", value)

    def distance(self, later: Origin) -> Any:
        """``later - self`` if it is the same number whatever the root is, else None."""
        if self.root is not later.root or not same_size(self.scale, later.scale):
            return None
        return later.offset - self.offset
