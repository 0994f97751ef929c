"""How small the sizes get that a loop changes: no smaller than before it, if no iteration makes them so.

A bound is taken to hold at the head of an iteration. Where it then holds at its end, too, it holds in all of them;
where it can't be told, the sizes are 0 or more, and the body is traced again.

Source: Cousot and Halbwachs, Automatic discovery of linear restraints among variables of a program, 1978.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dy2st.tracing.graph_ops import size_apart
from dy2st.tracing.tracer import Tracing, at_least

# A dimension of a leaf that a loop carries: the variable or slot, the number of the leaf in there, the dimension.
Dimension = tuple[Any, int, int]
# What is known of it: its class, and its size before the loop, at its head and at the end of an iteration.
Sizes = tuple[int, Any, Any]


class LeastSizes:
    """Of one loop."""

    def __init__(self, tracing: Tracing) -> None:
        self.tracing = tracing
        # Dimensions of which no bound is known.
        self.without: set[Dimension] = set()

    def bounds(self, dimensions: Mapping[Dimension, Sizes]) -> dict[int, int]:
        """By class, a bound of its least size that holds before the loop."""
        free = {number for place, (number, *_) in dimensions.items() if place in self.without}
        found: dict[int, int] = {}
        for number, before, _ in dimensions.values():
            if number not in free:
                least = self.tracing.least_value(before)
                found[number] = min(least, found.get(number, least))
        return {number: least for number, least in found.items() if least > 0}

    def check(self, bounds: Mapping[int, int], dimensions: Mapping[Dimension, Sizes]) -> None:
        """Forget the bounds that need not hold at the end of an iteration at whose head they did."""
        first: dict[int, Any] = {}
        for number, before, _ in dimensions.values():
            apart = size_apart(before, first.setdefault(number, before))
            if apart is not None and apart < 0:
                first[number] = before
        for place, (number, before, after) in dimensions.items():
            apart = size_apart(before, first[number])
            if number in bounds and (apart is None or not at_least(after, bounds[number] + apart)):
                self.without.add(place)
