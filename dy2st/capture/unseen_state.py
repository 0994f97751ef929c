"""State that changes where no capture sees it: arrays of numpy's and of Python's, counters and other iterators.

A capture runs the model's code, and what it does to these it really does. So they are looked at before and after.
"""

from __future__ import annotations

import array
import contextlib
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dy2st.capture.carried_places import Paths
from dy2st.capture.carried_units import FORGET
from dy2st.errors import CarriedStateError, HeapSizeError
from dy2st.source.assigning_lines import named_at

_ITERABLES: tuple[Iterable[Any], ...] = (range(0), (), [], {}, {}.values(), {}.items(), "", set())

# By type: what tells a value from a changed one.
_LOOKS: dict[type, Callable[[Any], Any]] = {
    np.ndarray: lambda value: (value.shape, value.tobytes()),
    bytearray: bytes,
    array.array: lambda value: value.tobytes(),
    itertools.count: repr,
    # How many elements are left.
    **{type(iter(each)): operator.length_hint for each in _ITERABLES},
    type(reversed([])): operator.length_hint,
}
# Arrays that are larger are tables, which nobody writes to in a call.
_MOST_BYTES = 1 << 24


class UnseenState:
    """What a model leads to of such, as it is now."""

    def __init__(self, model: Any) -> None:
        self.paths: Paths | None = None
        with contextlib.suppress(HeapSizeError):  # what holds so much is not looked through, unless there is state
            self.paths = Paths(model)
        objects = [] if self.paths is None else self.paths.objects
        found = [each for each in objects if type(each) in _LOOKS and _size(each) <= _MOST_BYTES]
        self._before = [(each, _LOOKS[type(each)](each)) for each in found]

    def require_unchanged(self) -> None:
        """Refuse a model that changes one of them.

        Raises:
            CarriedStateError: it does. Arrays have been put back.
        """
        for value, before in self._before:
            if _LOOKS[type(value)](value) == before:
                continue
            if isinstance(value, np.ndarray):
                value[...] = np.frombuffer(before[1], value.dtype).reshape(before[0])
            assert self.paths is not None
            holder, kind, key = self.paths.parents.get(id(value), (None, "", ""))
            name = self.paths.path(holder, str(key)) if holder is not None else type(value).__name__
            raise CarriedStateError(
                f"{name!r} is a {type(value).__name__} that the model changes in each call, which a graph can't see",
                hint=f"keep a tensor or a number in its place; {FORGET}",
                location=named_at(type(holder), str(key)) if kind == "attribute" else None,
            )


def _size(value: Any) -> int:
    return int(value.nbytes) if isinstance(value, np.ndarray) else 0
