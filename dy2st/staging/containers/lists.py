"""Lists and deques whose length, or the index that they are changed at, is data-dependent.

``load``, ``store`` and ``delete`` stand for subscripts; methods are in ``list_methods``, comparisons and orders in
``list_values``. What Python can do with the list as it is, Python does; else the content becomes rows, and Python's
rules for indices that are out of range become guards.
"""

from __future__ import annotations

import collections
from typing import Any

import torch

from dy2st.errors import GrownListError
from dy2st.source.user_frames import users_frame
from dy2st.staging.containers import row_ops
from dy2st.staging.containers.indices import in_range, plain
from dy2st.staging.containers.selection import picked_element
from dy2st.staging.loops.iterables import as_iterable, noted
from dy2st.staging.loops.looped_comprehension import mapped
from dy2st.staging.session import Session
from dy2st.staging.unequal_lengths import note_element
from dy2st.values.elements import Cell
from dy2st.values.number import SYMBOLS, Number, number_tensor
from dy2st.values.stacked_list import StackedList, has_rows, row_list
from dy2st.values.tagged_union import cases_of

List = Any  # list | collections.deque
STAGED = (Number, torch.Tensor, *SYMBOLS)
# Rows of a static number up to this become that many elements again.
MOST_SPREAD = 64


# ---- content


def python_class(owner: List) -> Any:
    """Python's own class of a list or deque, whose methods a class of the user's may have others in place of."""
    return list if isinstance(owner, list) else collections.deque


def put(owner: List, rows: StackedList) -> None:
    """Let ``rows`` be the content of a list or deque: copies of the elements that it has in eager."""
    for value in owner:
        if not isinstance(value, StackedList):
            noted(value)
    length = rows.length
    values: list[Any] = [rows]
    if isinstance(length, int) and length <= MOST_SPREAD:
        values = [noted(rows.at(i)) for i in range(length)]
    maxlen = getattr(owner, "maxlen", None)
    if maxlen is not None and values == [rows]:
        values = [row_ops.sliced(rows, slice(-maxlen, None))] if maxlen else []
    kind = python_class(owner)
    kind.clear(owner)
    kind.extend(owner, values)


def whole(owner: List) -> StackedList:
    """The content as rows; raises ``GrownListError`` and its kind if the elements are unlike."""
    return row_list(list(owner))


def certain_place(owner: List, index: Any) -> bool:
    """Whether Python knows which element ``index`` is: only plain elements up to there."""
    if not isinstance(index, int):
        return False
    values = list(owner)
    between = values[: index + 1] if index >= 0 else values[index:]
    enough = len(between) == index + 1 if index >= 0 else len(values) >= -index
    return enough and not has_rows(between)


# ---- subscripts


def is_staged(owner: List, key: Any) -> bool:
    """Whether Python can't do a subscript itself."""
    parts = (key.start, key.stop, key.step) if isinstance(key, slice) else (key,)
    return has_rows(owner) or any(isinstance(p, STAGED) for p in parts)


def load(capture: Session, owner: Any, key: Any, *, sure: bool = False) -> Any:
    """``owner[key]`` of a list, tuple or deque; ``sure``: there is such an element, counted from 0."""
    key = plain(key)
    if not is_staged(owner, key) or certain_place(owner, key):
        try:
            found = owner[key]
        except IndexError as error:
            return capture.fail(error)
        return capture.new(found) if isinstance(key, slice) and isinstance(found, list) else found
    if isinstance(key, slice):
        made: Any = []
        if len(owner):
            put(made, row_ops.sliced(whole(owner), key))
        return capture.new(made) if isinstance(owner, list) else tuple(made)
    if not len(owner):
        return capture.fail(IndexError("list index out of range"))
    if not has_rows(owner):
        place = number_tensor(key) if sure else in_range(capture, key, len(owner), reads=True)
        return picked_element(capture, owner, place if isinstance(place, torch.Tensor) else number_tensor(place))
    rows = whole(owner)
    place = number_tensor(key) if sure else in_range(capture, key, rows.length, reads=True)
    return element_of(capture, owner, rows, place)


def element_of(capture: Session, owner: List, rows: StackedList, place: row_ops.Place) -> Any:
    """One element of a list, with these rows, at a place that there is."""
    element = noted(row_ops.element_at(rows, place))
    for part in cases_of(element):
        if isinstance(part, torch.Tensor):
            given = (case for value in owner for case in cases_of(value))
            capture.aliases.is_one_of(part, *(case for case in given if isinstance(case, torch.Tensor)))
    return element


def store(capture: Session, owner: List, key: Any, value: Any, *, sure: bool = False) -> None:
    """``owner[key] = value``; the change has been announced. ``sure``: there is such a place, counted from 0."""
    key = plain(key)
    if not is_staged(owner, key) or certain_place(owner, key):
        try:
            owner[key] = value
        except IndexError as error:
            capture.fail(error)
        return
    if isinstance(key, slice):
        values = elements(value)
        simple = all(p is None or (type(p) is int and p >= 0) for p in (key.start, key.stop)) and key.step is None
        if not simple:
            raise GrownListError(
                "a slice of a list of data-dependent length is assigned to",
                hint="put the list together anew: rows = [*rows[:i], *new, *rows[j:]]",
            )
        start, stop = key.start or 0, key.stop
        rows = whole(owner) if len(owner) else None
        head = [row_ops.sliced(rows, slice(0, start))] if rows is not None and start else []
        tail = []
        if rows is not None and stop is not None:
            tail = [row_ops.sliced(rows, slice(max(start, stop), None))]
        content = [*head, *values, *tail]
        kind = python_class(owner)
        kind.clear(owner)
        kind.extend(owner, content)
        return
    if not len(owner):
        capture.fail(IndexError("list assignment index out of range"))
        return
    rows = whole(owner)
    place: row_ops.Place = number_tensor(key)
    if not sure:
        place = in_range(capture, key, rows.length, "list assignment index out of range")
    put(owner, row_ops.replaced(rows, place, value))
    note(capture, value)


def delete(capture: Session, owner: List, key: Any) -> None:
    """``del owner[key]``; the change has been announced."""
    key = plain(key)
    if not is_staged(owner, key) or certain_place(owner, key):
        try:
            del owner[key]
        except IndexError as error:
            capture.fail(error)
    elif not len(owner) and not isinstance(key, slice):
        capture.fail(IndexError("list assignment index out of range"))
    elif isinstance(key, slice):
        put(owner, row_ops.without_slice(whole(owner), key))
    else:
        rows = whole(owner)
        put(owner, row_ops.without(rows, in_range(capture, key, rows.length, "list assignment index out of range")))


def note(capture: Session, value: Any) -> None:
    """``value`` has been put into rows."""
    note_element(capture, value, {slot.identity for slot in capture.trace_frames[-1].journal.old})


def elements(values: Any) -> list[Any]:
    """The elements of an iterable, rows among them."""
    if isinstance(values, (list, tuple, collections.deque)):
        return list(values)
    found = as_iterable(values)
    if found is None:
        return list(values)
    if isinstance(values, torch.Tensor):
        return [StackedList([values], Cell(values.dtype, values.dim() - 1, None))]
    return mapped(found, lambda element: element, users_frame())
