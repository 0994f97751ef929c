"""Intervals: between which two numbers the elements of a value are, and whether some may be NaN.

Ends are computed in the value's own dtype, as the value itself is. Rounding keeps the order of numbers, so a rounded
end bounds rounded sums; and a counter that grows for ever is bounded, since float32 has ``2**30 + 1 == 2**30``.

A sum of ``n`` products may be added in any order. It is off by at most ``n u`` times the sum of their sizes, for ``u``
the unit roundoff, whatever ``n`` is: Jeannerod, Rump, "Improved error bounds for inner products in floating-point
arithmetic", SIAM J. Matrix Anal. Appl. 34(2), 2013.
Source: interval arithmetic, Moore, "Interval Analysis", 1966.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# So many elements a tensor has at most: 4 TB of float32.
MOST_ELEMENTS = 2**40
# Functions are not rounded to the nearest number. This is by far more than any implementation is off.
SLACK = 0.01


@dataclass(frozen=True)
class Interval:
    """What is known of all elements of a value: each is NaN, if ``nan``, or from ``low`` to ``high``, both included."""

    low: Any
    high: Any
    nan: bool

    @property
    def is_finite(self) -> bool:
        """Whether each element is a finite number."""
        # The ends may be ints of any size, of which numpy knows nothing.
        return not self.nan and bool(-math.inf < self.low and self.high < math.inf)

    @property
    def is_infinite(self) -> bool:
        """Whether some element may be infinite."""
        return any(abs(end) == math.inf for end in (self.low, self.high))

    @property
    def size(self) -> Any:
        """What no absolute value exceeds."""
        return max(abs(self.low), abs(self.high))

    def of(self, kind: type) -> Interval:
        """With ends of a dtype, rounded as its numbers are."""
        with np.errstate(all="ignore"):
            return Interval(kind(self.low), kind(self.high), self.nan)

    def __contains__(self, number: float) -> bool:
        """Whether an element may be a number."""
        return bool(self.low <= number <= self.high)


ANY = Interval(-math.inf, math.inf, nan=True)


def union(*parts: Interval) -> Interval:
    """What holds for each of several values."""
    return Interval(min(p.low for p in parts), max(p.high for p in parts), any(p.nan for p in parts))


def _ends(numbers: list[Any]) -> tuple[Any, Any]:
    """The least and the greatest; what is no number may be any."""
    if any(each != each for each in numbers):  # noqa: PLR0124 - NaN
        return type(numbers[0])(-math.inf), type(numbers[0])(math.inf)
    return min(numbers), max(numbers)


def added(a: Interval, b: Interval) -> Interval:
    """Sums."""
    low = _ends([a.low + b.low])[0]
    high = _ends([a.high + b.high])[1]
    opposite = (a.high, b.low) == (math.inf, -math.inf) or (a.low, b.high) == (-math.inf, math.inf)
    return Interval(low, high, a.nan or b.nan or opposite)


def negated(a: Interval) -> Interval:
    """The numbers with the other sign."""
    return Interval(-a.high, -a.low, a.nan)


def multiplied(a: Interval, b: Interval) -> Interval:
    """Products."""
    # An end of zero times any number, however large, is zero.
    zero = type(a.low)(0)
    products = [zero if 0 in (x, y) else x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    undefined = (0 in a and b.is_infinite) or (0 in b and a.is_infinite)
    return Interval(min(products), max(products), a.nan or b.nan or undefined)


def squared(a: Interval) -> Interval:
    """Products with themselves."""
    most = a.size * a.size
    least = type(most)(0) if 0 in a else min(a.low * a.low, a.high * a.high)
    return Interval(least, most, a.nan)


def divided(a: Interval, b: Interval) -> Interval:
    """Quotients of floats."""
    if 0 in b:
        kind = type(a.low)
        undefined = 0 in a or (a.is_infinite and b.is_infinite)
        return Interval(kind(-math.inf), kind(math.inf), a.nan or b.nan or undefined)
    low, high = _ends([x / y for x in (a.low, a.high) for y in (b.low, b.high)])
    return Interval(low, high, a.nan or b.nan or (a.is_infinite and b.is_infinite))


def bounded(low: float, high: float, of: Interval, *, nan: bool = False) -> Interval:
    """From one number to another; NaN where the operand is."""
    return Interval(low, high, of.nan or nan)


def monotone(function: Callable[[Any], Any], of: Interval, *, exact: bool = False) -> Interval:
    """A function that grows, or stays, with its argument; ``exact`` if it is rounded as its numbers are."""
    low, high = function(of.low), function(of.high)
    if not exact and np.isfinite(low):
        low -= abs(low) * type(low)(SLACK)
    if not exact and np.isfinite(high):
        high += abs(high) * type(high)(SLACK)
    return Interval(low, high, of.nan)


def summed(each: Interval, count: int) -> Interval:
    """Sums of so many numbers, or of some of them, added in any order."""
    kind = type(each.low)
    most = each.size * kind(count) * kind(1 + count * float(np.finfo(kind).eps)) if count else kind(0)
    # Infinities of both signs, or parts of a sum that have become such.
    undefined = bool(np.isinf(most)) and each.low < 0 < each.high
    low, high = -most if each.low < 0 else kind(0), most if each.high > 0 else kind(0)
    return Interval(low, high, each.nan or undefined)
