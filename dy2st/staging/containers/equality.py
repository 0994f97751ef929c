"""``==`` of lists, tuples (shapes among them), dicts and dataclasses with what is known only when the graph runs.

Python counts the elements of two lists before it looks at any, and asks each pair for a bool.
"""

from __future__ import annotations

import collections
import dataclasses
import types
from collections.abc import Sequence
from typing import Any

import torch

from dy2st.errors import GrownListError
from dy2st.staging.conditions import both, condition, truth_number
from dy2st.values.number import Number
from dy2st.values.stacked_list import StackedList, has_rows, row_list


def are_staged(a: Any, b: Any) -> bool:
    """Whether two containers of one kind have what is data-dependent, or tensors of one int.

    What is compared with itself is equal, also for Python.
    """
    if a is b:
        return False
    if has_rows(a) or has_rows(b):
        return _of_one_kind(a, b)
    pairs = _pairs(a, b)
    return pairs is not None and any(_is_staged(x) or _is_staged(y) or are_staged(x, y) for x, y in pairs)


def _is_staged(value: Any) -> bool:
    return isinstance(value, (torch.SymInt, Number)) or _is_int(value)


def _of_one_kind(a: Any, b: Any) -> bool:
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in (tuple, list, collections.deque))


def _pairs(a: Any, b: Any) -> list[tuple[Any, Any]] | None:
    """What ``a == b`` compares, if these may be equal: elements of sequences, values of dicts, fields of objects.

    None where Python counts, compares keys or classes, and is done, and of what is no container.
    """
    if _of_one_kind(a, b):
        return list(zip(a, b, strict=True)) if len(a) == len(b) else None
    if isinstance(a, dict) and isinstance(b, dict):
        return [(a[key], b[key]) for key in a] if a.keys() == b.keys() else None
    names = compared_fields(a, b, "__eq__")
    return None if names is None else [(getattr(a, name), getattr(b, name)) for name in names]


def compared_fields(a: Any, b: Any, method: str) -> tuple[str, ...] | None:
    """The fields by which a method compares two objects that ``dataclasses`` has written; None if it is another one.

    They are those of the class that has the method: one that derives from it may have more.
    """
    owner: Any = next((each for each in type(a).__mro__ if method in vars(each)), object)
    written = getattr(vars(owner).get(method), "__code__", None)
    if type(a) is not type(b) or written is None or written.co_filename != "<string>":
        return None
    if not dataclasses.is_dataclass(owner):
        return None
    return tuple(each.name for each in dataclasses.fields(owner) if each.compare)


def inverts_equality(value: Any) -> bool:
    """Whether ``value`` is an object with the user's ``__eq__``, of which Python takes ``!=`` for the opposite."""
    cls: Any = type(value)
    return cls.__ne__ is object.__ne__ and isinstance(cls.__eq__, types.FunctionType)


def _is_int(value: Any) -> bool:
    """Whether a value is a tensor of one int or bool: what equals it does not depend on which object it is."""
    if not isinstance(value, torch.Tensor) or value.dim() > 0:
        return False
    return not value.dtype.is_floating_point and not value.dtype.is_complex


def same_elements(a: Any, b: Any) -> Any:
    """``a == b`` of two such: a bool, symbolic where one size decides, else staged."""
    if has_rows(a) or has_rows(b):
        return _same_rows(a, b)
    pairs = _pairs(a, b)
    if pairs is None:
        return False
    tests = [same_elements(x, y) if are_staged(x, y) else x == y for x, y in pairs]
    open_tests = [test for test in tests if not isinstance(decided := condition(test), bool) or not decided]
    if len(open_tests) == 1 and isinstance(open_tests[0], torch.SymBool):
        return open_tests[0]
    same: Any = True
    for test in open_tests:
        same = both(same, condition(test))
        if same is False:
            return False
    return truth_number(same)


def _same_rows(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """As many elements, and each equal to that at its place."""
    if len(a) == 0 or len(b) == 0:
        return truth_number(condition(row_list(a or b).length == 0))
    one, other = compared_rows(a, b)
    alike = (_first(one, other) == other.stack).all()
    return truth_number(both(condition(one.length == other.length), alike))


def compared_rows(a: Sequence[Any], b: Sequence[Any]) -> tuple[StackedList, StackedList]:
    """Two lists that are not empty for Python, as rows of numbers of one kind.

    Raises:
        GrownListError: there are others.
    """
    one, other = row_list(a), row_list(b)
    kinds = {int if each.kind is bool else each.kind for each in (one, other)}
    if len(kinds) > 1 or None in kinds:
        raise GrownListError(
            "a list of data-dependent length is compared with another one",
            hint="compare their lengths, and then their stacked tensors",
        )
    return one, other


def _first(rows: StackedList, beside: StackedList) -> torch.Tensor:
    """The first rows, as many as the others are; zeros where there are less."""
    more = torch.zeros_like(beside.stack, dtype=rows.stack.dtype)
    return torch.cat([rows.stack, more]).narrow(0, 0, beside.length)
