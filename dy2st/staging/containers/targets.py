"""What is unpacked into several targets, where only the graph can count the values: ``a, b = found``.

Python raises a ``ValueError`` for another number of values than there are targets; so does the graph. A starred target
takes a list of what the others leave.

Source: Python reference, 7.2 Assignment statements.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from dy2st.errors import GrownListError
from dy2st.staging.containers import lists
from dy2st.staging.containers.indices import require
from dy2st.staging.loops.iterables import StagedIterable, as_iterable, gone_over
from dy2st.staging.session import Session
from dy2st.values.number import number_tensor

LISTS = (list, tuple, collections.deque)


class Targets(NamedTuple):
    """What a value is unpacked into."""

    first: int | None = None
    """How many there are, or how many before the one with a star; None if there are several lists of targets."""
    last: int | None = None
    """How many there are behind the one with a star; None if none has one."""
    inner: Mapping[int, tuple[Any, ...]] = MappingProxyType({})
    """Those that are targets in brackets, by their number: behind a star they count from the end."""


def unpacked(capture: Session, value: Any, targets: Targets) -> Any:
    """``value``, or as many values as there are targets.

    Raises:
        GrownListError: there are several lists of targets.
    """
    value = gone_over(capture, value)
    found = as_iterable(value)
    if found is not None:
        value = _values(capture, value, found, targets)
    if targets.inner and isinstance(value, (list, tuple)):
        value = list(value)
        for number, inner in targets.inner.items():
            if -len(value) <= number < len(value):
                value[number] = unpacked(capture, value[number], Targets(*inner))
    return value


def _values(capture: Session, value: Any, found: StagedIterable, targets: Targets) -> list[Any]:
    """As many values as there are targets, and all others where one has a star."""
    first, last = targets.first, targets.last
    if first is None:
        raise GrownListError(
            "what has a data-dependent length is unpacked, and is assigned to something else, too",
            hint="assign it to one name, and unpack that: found = f(x), then a, b = found",
        )
    least = first + (last or 0)
    what = f"not {first} values to unpack" if last is None else f"not enough values to unpack (at least {least})"
    count = number_tensor(found.length)
    require(capture, count == first if last is None else count >= least, ValueError(what), reads=True)
    if last is None and not isinstance(value, (*LISTS, torch.Tensor)):
        return [found.element(i) for i in range(first)]  # which may be of different sizes
    values = lists.elements(value)
    rows = lists.whole(values)

    def at(place: torch.Tensor) -> Any:
        return lists.element_of(capture, values, rows, capture.guards.after(place))

    taken = [at(torch.tensor(i)) for i in range(first)]
    if last is None:
        return taken
    rest = lists.load(capture, values, slice(first, -last if last else None))
    return [*taken, *rest, *(at(count - i) for i in range(last, 0, -1))]
