"""What stands for the methods of lists and deques.

Needed where a length, an index or an order is data-dependent.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torch

from dy2st.errors import GrownListError
from dy2st.staging.containers import row_ops
from dy2st.staging.containers.indices import in_range, plain, require
from dy2st.staging.containers.list_values import (
    compares,
    equal_mask,
    in_order,
    in_their_order,
    keyed,
    keys_of,
    order_themselves,
    python_orders,
)
from dy2st.staging.containers.lists import List, certain_place, elements, is_staged, note, put, python_class, whole
from dy2st.staging.loops.iterables import as_iterable, gone_over, noted
from dy2st.staging.session import Session
from dy2st.tracing.tracer import at_least
from dy2st.values.number import Number
from dy2st.values.stacked_list import StackedList, has_rows, row_list

METHODS: dict[str, Callable[..., Any]] = {}
# Methods that do not look at the elements, of which there may be more than Python knows.
AS_THEY_ARE = frozenset(("clear", "__class_getitem__", "__getattribute__", "__hash__", "__init__", "__new__"))


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register what stands for the list method of that name."""
    METHODS[function.__name__.strip("_")] = function
    return function


def bound_list_method(capture: Session, owner: List, native: Callable[..., Any]) -> Callable[..., Any] | None:
    """What stands for Python's own bound method of a list or deque; None for one that is right as it is.

    A class of the user's may have one of its own, of which this is the base's: it is never asked for by its name.
    """
    name = native.__name__
    stand_in = METHODS.get(name.strip("_"))
    if stand_in is None:
        if has_rows(owner) and name in vars(python_class(owner)) and name not in AS_THEY_ARE:
            raise GrownListError(
                f"{name}() is called on a {type(owner).__name__} of data-dependent length",
                hint="write it with append and pop, in a loop",
            )
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        found = stand_in(capture, owner, *args, **kwargs)
        if found is not NotImplemented:
            return found
        try:
            return native(*args, **kwargs)
        except (IndexError, ValueError) as error:
            return capture.fail(error)

    return run


@method
def append(capture: Session, owner: List, value: Any) -> Any:
    """At the end; natively, unless a bounded deque drops its first element for it."""
    if getattr(owner, "maxlen", None) is None or not has_rows(owner):
        return NotImplemented
    put(owner, row_list([*owner, value]))
    note(capture, value)
    return None


@method
def appendleft(capture: Session, owner: List, value: Any) -> Any:
    """At the beginning."""
    if getattr(owner, "maxlen", None) is None or not has_rows(owner):
        return NotImplemented
    rows = row_list([value, *owner])
    kept = row_ops.sliced(rows, slice(None, owner.maxlen))
    kind = python_class(owner)
    kind.clear(owner)
    kind.append(owner, kept)
    note(capture, value)
    return None


@method
def extend(capture: Session, owner: List, values: Any) -> Any:
    """Several at the end."""
    values = gone_over(capture, values)
    if not has_rows(values) and as_iterable(values) is None:
        return NotImplemented if getattr(owner, "maxlen", None) is None else _each(append, capture, owner, values)
    found = elements(values)
    if getattr(owner, "maxlen", None) is None:
        python_class(owner).extend(owner, found)
    else:
        put(owner, row_list([*owner, *found]))
    return None


def added(capture: Session, owner: Any, values: Any) -> Any:
    """What ``owner += values`` still has to add; to a list it is what ``extend`` takes."""
    capture.touch_content(owner)
    if isinstance(owner, collections.deque) and owner.maxlen is not None:
        extend(capture, owner, values)
        return ()
    staged = isinstance(owner, (list, collections.deque)) and (has_rows(values) or as_iterable(values) is not None)
    return elements(values) if staged else values


def _each(add: Callable[..., Any], capture: Session, owner: List, values: Any) -> None:
    for value in values:
        if add(capture, owner, value) is NotImplemented:
            python_class(owner).append(owner, value)


@method
def insert(capture: Session, owner: List, index: Any, value: Any) -> Any:
    """Before a place, which Python clamps."""
    index = plain(index)
    if type(index) is int and index == 0:
        return NotImplemented
    if not is_staged(owner, index):
        return NotImplemented
    put(owner, row_ops.inserted(whole(owner), index, value) if len(owner) else row_list([value]))
    note(capture, value)
    return None


@method
def pop(capture: Session, owner: List, *index: Any) -> Any:
    """One element taken out."""
    key = plain(index[0]) if index else -1
    if not is_staged(owner, key) or certain_place(owner, key):
        return NotImplemented
    if not len(owner):
        return capture.fail(IndexError("pop from empty list"))
    last = owner[-1]
    if type(key) is int and key == -1 and isinstance(last, StackedList) and at_least(last.length, 1):
        element = noted(last.at(-1))
        owner[-1] = row_ops.without(last, -1)
        return element
    rows = whole(owner)
    place = in_range(capture, key, rows.length, "pop index out of range")
    element = noted(row_ops.element_at(rows, place))
    ends = isinstance(key, int) and key in (0, -1)
    put(owner, row_ops.without(rows, key if ends else place))
    return element


@method
def popleft(capture: Session, owner: List) -> Any:
    """The first element taken out of a deque."""
    if not has_rows(owner) or certain_place(owner, 0):
        return NotImplemented
    return pop(capture, owner, 0)


@method
def reverse(_capture: Session, owner: List) -> Any:
    """In place."""
    if not has_rows(owner):
        return NotImplemented
    put(owner, row_ops.sliced(whole(owner), slice(None, None, -1)))
    return None


@method
def _len(_capture: Session, owner: List) -> Any:
    """How many elements there are: ``super().__len__()``."""
    if not has_rows(owner):
        return NotImplemented
    return sum(value.length if isinstance(value, StackedList) else 1 for value in python_class(owner).__iter__(owner))


@method
def copy(capture: Session, owner: List) -> Any:
    """A new list with the same elements."""
    return capture.new(python_class(owner).copy(owner))


@method
def sort(capture: Session, owner: List, *, key: Any = None, reverse: Any = False) -> Any:
    """In place, stable."""
    keys = keys_of(capture, owner, key)
    if python_orders(owner, keys):
        return list.sort(owner, key=keyed(keys), reverse=reverse)
    if order_themselves(keys):
        put(owner, row_list(in_their_order(capture, owner, keys, reverse)))
        return None
    put(owner, in_order(owner, keys, reverse))
    return None


@method
def index(capture: Session, owner: List, value: Any, *where: Any) -> Any:
    """The place of the first element that equals ``value``."""
    if not compares(owner, value):
        return NotImplemented
    if where:
        raise GrownListError("index() with bounds is called on data-dependent values", hint="slice the list first")
    found = equal_mask(owner, value)
    absent = ValueError("value is not in list")
    if isinstance(found, bool):
        raise absent
    require(capture, found.any(), absent)
    return Number(torch.argmax(found.to(torch.int64), dim=0), int)


@method
def count(_capture: Session, owner: List, value: Any) -> Any:
    """How many elements equal ``value``."""
    if not compares(owner, value):
        return NotImplemented
    found = equal_mask(owner, value)
    return 0 if isinstance(found, bool) else Number(found.sum(), int)


@method
def remove(capture: Session, owner: List, value: Any) -> Any:
    """The first element that equals ``value`` taken out."""
    if not compares(owner, value):
        return NotImplemented
    place = index(capture, owner, value)
    put(owner, row_ops.without(whole(owner), capture.guards.after(place.tensor)))
    return None
