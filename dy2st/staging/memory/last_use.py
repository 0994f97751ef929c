"""Values that nobody refers to but the store that they are given to: ``m[i] = max(m[i], m[i + 1])``.

What such a tensor may be the same as does not matter any more when ``m`` is written to: nobody can look at it again.
It shows in the count of references, which is compared with that of a temporary value and of a variable.
"""

from __future__ import annotations

import sys
from typing import Any


def references(value: list[Any]) -> int:
    """How many references there are to the only element of a list."""
    return sys.getrefcount(value[0])


class _Sample:
    """Takes a store as a driver does, and counts."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __setitem__(self, key: Any, value: Any) -> None:
        self.counts.append(references([value]))


def _of_a_temporary() -> int:
    """The count of a temporary value; 0 where a variable's is no larger, so that the two can't be told apart."""
    sample, variable = _Sample(), object()
    # What looks into frames may make references of its own.
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        sample[0] = object()
        sample[0] = variable
    finally:
        sys.settrace(trace)
    first, second = sample.counts
    return first if second > first else 0


OF_A_TEMPORARY = _of_a_temporary()


def is_last_use(value: list[Any]) -> bool:
    """Whether the ``__setitem__`` that was given a value, and has it in this list and in one variable, is all there is.

    A reference more, wherever it comes from, makes the answer no.
    """
    return references(value) <= OF_A_TEMPORARY
