"""Lists and what is in them by value: search, equality, order."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any

import torch

from dy2st.errors import GrownListError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.conditions import condition, truth_number
from dy2st.staging.containers import row_ops
from dy2st.staging.containers.equality import are_staged, same_elements
from dy2st.staging.containers.indices import require
from dy2st.staging.containers.lists import STAGED, elements, put, whole
from dy2st.staging.containers.selection import picked_element
from dy2st.staging.containers.sorted_functions import extreme_by_comparison, sorted_by_comparison
from dy2st.staging.loops.iterables import as_iterable, noted
from dy2st.staging.loops.looped_comprehension import mapped
from dy2st.staging.session import MODE, Session
from dy2st.values.elements import Composite
from dy2st.values.number import Number, number_tensor
from dy2st.values.plain_objects import attributes_of, is_plain, is_plain_class
from dy2st.values.references import is_reference, is_reference_class
from dy2st.values.stacked_list import StackedList, has_rows, row_list


def compares(owner: Any, value: Any) -> bool:
    """Whether a search for ``value`` has to compare what is data-dependent."""
    return len(owner) > 0 and (has_rows(owner) or has_staged_parts(value) or any(map(has_staged_parts, owner)))


def has_staged_parts(value: Any) -> bool:
    """Whether a value is data-dependent, or a part of it."""
    if isinstance(value, (tuple, list)):
        return has_rows(value) or any(map(has_staged_parts, value))
    return isinstance(value, STAGED)


def equal_mask(owner: Any, value: Any) -> torch.Tensor | bool:
    """For each element whether it equals ``value``: bool [n], or False if none can."""
    if isinstance(value, (tuple, list)) and has_rows(value):
        if has_rows(owner):
            raise GrownListError(
                "a list of data-dependent length is searched for another one",
                hint="compare each of its elements with it in a loop",
            )
        tests = [are_staged(each, value) and same_elements(each, value) for each in owner]
        return torch.stack([number_tensor(test) for test in tests])
    found = row_ops.equals(whole(owner), value)
    if found is True:
        return torch.ones(whole(owner).length, dtype=torch.bool)
    return found


def contains(owner: Any, value: Any) -> Any:
    """``value in owner`` of a list with rows."""
    found = equal_mask(owner, value)
    return found if isinstance(found, bool) else truth_number(found.any())


def concatenated(a: Any, b: Any) -> Any:
    """``a + b``: beside a shape, whose elements are sizes, a number that is data becomes one."""
    if not isinstance(a, torch.Size) and not isinstance(b, torch.Size):
        return a + b

    def sizes(side: Any) -> Any:
        known = not isinstance(side, tuple) or isinstance(side, torch.Size)
        return side if known else tuple(each.symbolic() if isinstance(each, Number) else each for each in side)

    return sizes(a) + sizes(b)


def keys_of(capture: Session, values: Any, key: Any) -> list[Any]:
    """What a list is ordered by, for each element; ``key`` is called once for each, in order."""
    if has_rows(values):
        if key is None:
            return list(values)
        found = as_iterable(list(values))
        assert found is not None
        return mapped(found, capture.call(key), users_frame())
    return list(values) if key is None else [capture.call(key)(value) for value in values]


def python_orders(values: Any, keys: list[Any]) -> bool:
    """Whether Python can compare the keys of a list."""
    if has_rows(values):
        return False
    attributes = [each for key in keys if is_plain(key) for each in attributes_of(key).values()]
    return len(keys) <= 1 or not any(has_staged_parts(each) or is_reference(each) for each in (*keys, *attributes))


def keyed(keys: list[Any]) -> Callable[[Any], Any]:
    """A key function for Python, which asks it for each element once, in order."""
    following = iter(keys)
    return lambda _: next(following)


def in_order(values: Any, keys: list[Any], reverse: Any) -> StackedList:
    """The elements of a list in the order of their keys, as rows."""
    rows, columns = whole(values), row_ops.sort_columns(row_list(keys))
    order = row_ops.sorted_order([_ordered(column) for column in columns], _direction(reverse))
    return row_ops.selected(rows, order)


def _direction(reverse: Any) -> bool:
    if not isinstance(reverse, bool):
        raise GrownListError("a list is sorted in a data-dependent direction", hint="negate the key instead")
    return reverse


def _ordered(column: torch.Tensor) -> torch.Tensor:
    """Keys among which no NaN is: where those end depends on what Python happens to compare."""
    capture = MODE.capture
    if capture is None or not column.dtype.is_floating_point:
        return column
    none = torch.logical_not(torch.isnan(column).any())
    capture.guards.require(none, location_of(users_frame()), "exported for keys without NaN", always=True)
    return capture.guards.after(column)


def order_themselves(keys: list[Any]) -> bool:
    """Whether keys are objects of a class of the user's that says which is less."""
    if not keys:
        return False
    element = row_list(keys).element if has_rows(keys) else None
    kind: Any = type(keys[0])
    if element is not None:
        kind = element.signature[0] if isinstance(element, Composite) else type(element)
    if not is_reference_class(kind) and not is_plain_class(kind):
        return False
    return any(isinstance(getattr(kind, name, None), types.FunctionType) for name in ("__lt__", "__gt__"))


def in_their_order(capture: Session, values: Any, keys: list[Any], reverse: Any) -> list[Any]:
    """The elements of a list in the order of keys that order themselves."""
    found, weak = capture.call(sorted_by_comparison)(values, keys, _direction(reverse))
    known = condition(weak)
    if not isinstance(known, bool):
        what = "exported for objects of which __lt__ is an order"
        capture.guards.require(known, location_of(users_frame()), what, always=True)
    return list(found)


def extreme(capture: Session, name: str, values: Any, key: Any = None) -> Any:
    """``max`` or ``min``."""
    keys = keys_of(capture, values, key)
    if python_orders(values, keys):
        return getattr(builtins, name)(values, key=keyed(keys))
    if order_themselves(keys) and not has_rows(values):
        return capture.call(extreme_by_comparison)(name, values, keys)
    if has_rows(values):
        require(capture, condition(whole(values).length > 0), ValueError(f"{name}() arg is an empty sequence"))
        if order_themselves(keys):
            return capture.call(extreme_by_comparison)(name, values, keys)
    found = row_list(keys)
    place = row_ops.extreme_place(StackedList([capture.guards.after(c) for c in found.columns], found.element), name)
    if has_rows(values):
        return noted(row_ops.element_at(whole(values), place))
    return picked_element(capture, values, place)


def sorted_list(capture: Session, values: Any, *, key: Any = None, reverse: Any = False) -> Any:
    """``sorted``."""
    content = elements(values)
    keys = keys_of(capture, content, key)
    if python_orders(content, keys):
        return capture.new(sorted(content, key=keyed(keys), reverse=reverse))
    if order_themselves(keys):
        return capture.new(in_their_order(capture, content, keys, reverse))
    made = list(content)
    put(made, in_order(content, keys, reverse))
    return capture.new(made)
