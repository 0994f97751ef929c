"""Lists and deques whose length, or the index that they are changed at, only the graph knows.

``bound_list_method`` stands for their methods, ``load``, ``store`` and ``delete`` for subscripts. What Python can do
with the list as it is, Python does; else the content becomes rows, and Python's rules for indices that are out of
range become guards.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dy2st.errors import CaughtError, GrownListError
from dy2st.graph.elements import Cell
from dy2st.graph.numbers import Number, number_tensor
from dy2st.graph.rows import Rows, has_rows, row_list
from dy2st.graph.tracing import at_least
from dy2st.operators import row_ops
from dy2st.operators.comprehension import mapped
from dy2st.operators.conditions import condition, truth_number
from dy2st.operators.frames import users_frame
from dy2st.operators.iterables import as_iterable, noted
from dy2st.operators.selection import picked

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture

List = Any  # list | collections.deque
STAGED = (Number, torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)
# Rows of a static number up to this become that many elements again.
MOST_SPREAD = 64


# ---- content


def put(owner: List, rows: Rows) -> None:
    """Let ``rows`` be the content of a list or deque: copies of the elements that it has in eager."""
    for value in owner:
        if not isinstance(value, Rows):
            noted(value)
    length = rows.length
    values: list[Any] = [rows]
    if isinstance(length, int) and length <= MOST_SPREAD:
        values = [noted(rows.at(i)) for i in range(length)]
    maxlen = getattr(owner, "maxlen", None)
    if maxlen is not None and values == [rows]:
        values = [row_ops.sliced(rows, slice(-maxlen, None))] if maxlen else []
    owner.clear()
    owner.extend(values)


def whole(owner: List) -> Rows:
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


# ---- places


def require(capture: Capture, ok: Any, error: Exception) -> None:
    """``ok`` (a condition) has to hold; eager raises ``error`` otherwise."""
    from dy2st.operators.frames import location_of

    if ok is True:
        return
    if ok is False:
        raise error
    location = location_of(users_frame())
    if capture.watched:
        raise CaughtError(
            "a list is used inside a try statement in a way that may raise an exception which it catches",
            hint="test for the case with an if in place of the try",
            location=location,
        )
    capture.guards.require(ok, location, always=True)


def in_range(capture: Capture, index: Any, length: Any, what: str = "list index out of range") -> row_ops.Place:
    """The place of an element, guarded where it may be out of range."""
    if isinstance(index, torch.Tensor):
        index = Number(index.reshape(()).to(torch.int64), int)
    if isinstance(index, bool):
        index = int(index)
    error = IndexError(what)
    if isinstance(index, int):
        least = index + 1 if index >= 0 else -index
        if at_least(length, least):
            return index
        require(capture, condition(length >= least), error)
    count = number_tensor(length)
    at = row_ops.wrapped(index, count)
    if not isinstance(index, int):
        ok = (at >= 0) & (at < count)
        require(capture, ok, error)
    return capture.guards.after(at)


# ---- subscripts


def is_staged(owner: List, key: Any) -> bool:
    """Whether Python can't do a subscript itself."""
    parts = (key.start, key.stop, key.step) if isinstance(key, slice) else (key,)
    return has_rows(owner) or any(isinstance(p, STAGED) for p in parts)


def plain(key: Any) -> Any:
    """A key with tensors as staged numbers."""
    if isinstance(key, slice):
        return slice(plain(key.start), plain(key.stop), plain(key.step))
    if isinstance(key, torch.Tensor):
        return Number(key.reshape(()).to(torch.int64), int)
    return key


def load(capture: Capture, owner: Any, key: Any) -> Any:
    """``owner[key]`` of a list, tuple or deque."""
    key = plain(key)
    if not is_staged(owner, key) or certain_place(owner, key):
        try:
            return owner[key]
        except IndexError as error:
            return capture.fail(error)
    if isinstance(key, slice):
        made: Any = []
        if len(owner):
            put(made, row_ops.sliced(whole(owner), key))
        return capture.new(made) if isinstance(owner, list) else tuple(made)
    if not len(owner):
        return capture.fail(IndexError("list index out of range"))
    if not has_rows(owner):
        place = in_range(capture, key, len(owner))
        return noted(picked(capture, owner, place if isinstance(place, torch.Tensor) else number_tensor(place)))
    rows = whole(owner)
    element = noted(row_ops.element_at(rows, in_range(capture, key, rows.length)))
    if isinstance(element, torch.Tensor):
        for value in owner:
            if isinstance(value, torch.Tensor):
                capture.aliases.may_be(element, value)
    return element


def store(capture: Capture, owner: List, key: Any, value: Any) -> None:
    """``owner[key] = value``; the change has been announced."""
    key = plain(key)
    if not is_staged(owner, key) or certain_place(owner, key):
        owner[key] = value
        return
    if isinstance(key, slice):
        values = elements(value)
        simple = all(p is None or (type(p) is int and p >= 0) for p in (key.start, key.stop)) and key.step is None
        if not simple:
            raise GrownListError(
                "a slice of a list whose length only the graph knows is assigned",
                hint="put the list together anew: rows = [*rows[:i], *new, *rows[j:]]",
            )
        start, stop = key.start or 0, key.stop
        rows = whole(owner) if len(owner) else None
        head = [row_ops.sliced(rows, slice(0, start))] if rows is not None and start else []
        tail = []
        if rows is not None and stop is not None:
            tail = [row_ops.sliced(rows, slice(max(start, stop), None))]
        content = [*head, *values, *tail]
        owner.clear()
        owner.extend(content)
        return
    rows = whole(owner)
    place = in_range(capture, key, rows.length, "list assignment index out of range")
    put(owner, row_ops.replaced(rows, place, value))
    note(capture, value)


def delete(capture: Capture, owner: List, key: Any) -> None:
    """``del owner[key]``; the change has been announced."""
    key = plain(key)
    if not is_staged(owner, key) or certain_place(owner, key):
        del owner[key]
    elif isinstance(key, slice):
        put(owner, row_ops.without_slice(whole(owner), key))
    else:
        rows = whole(owner)
        put(owner, row_ops.without(rows, in_range(capture, key, rows.length, "list assignment index out of range")))


def note(capture: Capture, value: Any) -> None:
    """``value`` has been put into rows."""
    from dy2st.operators.uneven import note_element

    note_element(capture, value, {slot.identity for slot in capture.scopes[-1].journal.old})


def elements(values: Any) -> list[Any]:
    """The elements of an iterable, rows among them."""
    if isinstance(values, (list, tuple, collections.deque)):
        return list(values)
    found = as_iterable(values)
    if found is None:
        return list(values)
    if isinstance(values, torch.Tensor):
        return [Rows([values], Cell(values.dtype, values.dim() - 1, None))]
    return mapped(found, lambda element: element, users_frame())


# ---- methods


METHODS: dict[str, Callable[..., Any]] = {}


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register what stands for the list method of that name."""
    METHODS[function.__name__.strip("_")] = function
    return function


def bound_list_method(capture: Capture, owner: List, name: str) -> Callable[..., Any] | None:
    """What stands for a bound method of a list or deque; None for one that is right as it is."""
    stand_in = METHODS.get(name)
    if stand_in is None:
        if has_rows(owner) and name in ("rotate", "__lt__", "__gt__", "__le__", "__ge__", "__eq__"):
            raise GrownListError(
                f"{name}() of a {type(owner).__name__} whose length only the graph knows",
                hint="write it with append and pop, in a loop",
            )
        return None
    native = getattr(owner, name)

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
def append(capture: Capture, owner: List, value: Any) -> Any:
    """At the end; natively, unless a bounded deque drops its first element for it."""
    if getattr(owner, "maxlen", None) is None or not has_rows(owner):
        return NotImplemented
    put(owner, row_list([*owner, value]))
    note(capture, value)
    return None


@method
def appendleft(capture: Capture, owner: List, value: Any) -> Any:
    """At the beginning."""
    if getattr(owner, "maxlen", None) is None or not has_rows(owner):
        return NotImplemented
    rows = row_list([value, *owner])
    kept = row_ops.sliced(rows, slice(None, owner.maxlen))
    owner.clear()
    owner.append(kept)
    note(capture, value)
    return None


@method
def extend(capture: Capture, owner: List, values: Any) -> Any:
    """Several at the end."""
    if not has_rows(values) and as_iterable(values) is None:
        return NotImplemented if getattr(owner, "maxlen", None) is None else _each(append, capture, owner, values)
    found = elements(values)
    if getattr(owner, "maxlen", None) is None:
        owner.extend(found)
    else:
        put(owner, row_list([*owner, *found]))
    return None


def _each(add: Callable[..., Any], capture: Capture, owner: List, values: Any) -> None:
    for value in values:
        if add(capture, owner, value) is NotImplemented:
            owner.append(value)


@method
def insert(capture: Capture, owner: List, index: Any, value: Any) -> Any:
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
def pop(capture: Capture, owner: List, *index: Any) -> Any:
    """One element taken out."""
    key = plain(index[0]) if index else -1
    if not is_staged(owner, key) or certain_place(owner, key):
        return NotImplemented
    if not len(owner):
        return capture.fail(IndexError("pop from empty list"))
    last = owner[-1]
    if type(key) is int and key == -1 and isinstance(last, Rows) and at_least(last.length, 1):
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
def popleft(capture: Capture, owner: List) -> Any:
    """The first element taken out of a deque."""
    if not has_rows(owner) or certain_place(owner, 0):
        return NotImplemented
    return pop(capture, owner, 0)


@method
def reverse(_capture: Capture, owner: List) -> Any:
    """In place."""
    if not has_rows(owner):
        return NotImplemented
    put(owner, row_ops.sliced(whole(owner), slice(None, None, -1)))
    return None


@method
def copy(capture: Capture, owner: List) -> Any:
    """A new list with the same elements."""
    return capture.new(owner[:] if isinstance(owner, list) else type(owner)(owner, owner.maxlen))


@method
def sort(capture: Capture, owner: List, *, key: Any = None, reverse: Any = False) -> Any:
    """In place, stable."""
    keys = keys_of(capture, owner, key)
    if keys is None:
        return NotImplemented
    put(owner, in_order(owner, keys, reverse))
    return None


@method
def index(capture: Capture, owner: List, value: Any, *where: Any) -> Any:
    """The place of the first element that equals ``value``."""
    if not compares(owner, value):
        return NotImplemented
    if where:
        raise GrownListError("index() between bounds on values that only the graph knows", hint="slice the list first")
    found = equal_mask(owner, value)
    absent = ValueError("value is not in list")
    if isinstance(found, bool):
        raise absent
    require(capture, found.any(), absent)
    return Number(torch.argmax(found.to(torch.int64), dim=0), int)


@method
def count(_capture: Capture, owner: List, value: Any) -> Any:
    """How many elements equal ``value``."""
    if not compares(owner, value):
        return NotImplemented
    found = equal_mask(owner, value)
    return 0 if isinstance(found, bool) else Number(found.sum(), int)


@method
def remove(capture: Capture, owner: List, value: Any) -> Any:
    """The first element that equals ``value`` taken out."""
    if not compares(owner, value):
        return NotImplemented
    place = index(capture, owner, value)
    put(owner, row_ops.without(whole(owner), capture.guards.after(place.tensor)))
    return None


# ---- by value


def compares(owner: Any, value: Any) -> bool:
    """Whether a search for ``value`` has to compare what only the graph knows."""
    return len(owner) > 0 and (has_rows(owner) or isinstance(value, STAGED) or any(_staged_parts(v) for v in owner))


def _staged_parts(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_staged_parts(v) for v in value)
    return isinstance(value, STAGED)


def equal_mask(owner: Any, value: Any) -> torch.Tensor | bool:
    """For each element whether it equals ``value``: bool [n], or False if none can."""
    found = row_ops.equals(whole(owner), value)
    if found is True:
        return torch.ones(whole(owner).length, dtype=torch.bool)
    return found


def contains(owner: Any, value: Any) -> Any:
    """``value in owner`` of a list with rows."""
    found = equal_mask(owner, value)
    return found if isinstance(found, bool) else truth_number(found.any())


def same_list(a: Any, b: Any) -> Any:
    """``a == b``, where one is a list display; staged where the other's length is."""
    if not has_rows(a) and not has_rows(b):
        return a == b
    if not isinstance(a, list) or not isinstance(b, list):
        return False
    if len(a) and len(b):
        raise GrownListError(
            "a list whose length only the graph knows is compared with another one",
            hint="compare their lengths, and then their stacked tensors",
        )
    return truth_number(condition(row_list(a or b).length == 0))


def keys_of(capture: Capture, values: Any, key: Any) -> list[Any] | None:
    """What a list is ordered by, for each element; None if Python can order it itself."""
    if has_rows(values):
        if key is None:
            return list(values)
        found = as_iterable(list(values))
        assert found is not None
        return mapped(found, capture.call(key), users_frame())
    keys = list(values) if key is None else [capture.call(key)(value) for value in values]
    return keys if len(keys) > 1 and any(_staged_parts(k) for k in keys) else None


def in_order(values: Any, keys: list[Any], reverse: Any) -> Rows:
    """The elements of a list in the order of their keys, as rows."""
    if not isinstance(reverse, bool):
        raise GrownListError("sorting whose direction only the graph knows", hint="negate the key instead")
    rows, keys_rows = whole(values), row_list(keys)
    return row_ops.selected(rows, row_ops.sorted_order(keys_rows, reverse))


def extreme(capture: Capture, name: str, values: Any, key: Any = None) -> Any:
    """``max`` or ``min`` by what only the graph knows; None if Python can tell."""
    keys = keys_of(capture, values, key)
    if keys is None:
        return None
    rows = whole(values)
    require(capture, condition(rows.length > 0), ValueError(f"{name}() arg is an empty sequence"))
    found = row_list(keys)
    place = row_ops.extreme_place(Rows([capture.guards.after(c) for c in found.columns], found.element), name)
    return noted(row_ops.element_at(rows, place))


def sorted_list(capture: Capture, values: Any, *, key: Any = None, reverse: Any = False) -> Any:
    """``sorted``, or None for what Python can sort itself."""
    content = elements(values)
    keys = keys_of(capture, content, key)
    if keys is None:
        return None
    made = list(content)
    put(made, in_order(content, keys, reverse))
    return capture.new(made)


def refuse_unpacking(value: Any) -> None:
    """Refuse a list whose length only the graph knows where Python counts the elements."""
    if has_rows(value):
        raise GrownListError(
            "a list whose length only the graph knows is unpacked",
            hint="use indices and slices: first, rest = xs[0], xs[1:]",
        )


# ---- code that is not converted

# Of the standard library these hand on a list, or its elements, as they are.
TRANSPARENT = frozenset({"builtins", "collections", "copy", "dataclasses", "typing"})
COUNTING: tuple[Any, ...] = (set, frozenset, dict, map, filter)


def counts_elements(function: Any) -> bool:
    """Whether a function that is not converted depends on how many elements a list has."""
    module = (getattr(function, "__module__", None) or "").partition(".")[0]
    known = isinstance(module, str) and module in sys.stdlib_module_names and module not in TRANSPARENT
    return known or any(function is one for one in COUNTING)


def refuse_rows(function: Any, values: tuple[Any, ...]) -> None:
    """Refuse lists whose length only the graph knows among the arguments of such a function."""
    if any(has_rows(value) for value in values):
        raise GrownListError(
            f"{getattr(function, '__name__', 'a function')}() of a list whose length only the graph knows",
            hint="iterate over the list with a for loop or a comprehension, or torch.stack it",
        )
