"""Joining values of different kinds into a ``TaggedUnion``."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from dy2st.values.number import number_kind
from dy2st.values.stacked_list import StackedList
from dy2st.values.staged_text import text_of
from dy2st.values.tagged_union import MOST_CASES, Retagged, TaggedUnion, cases_of, tag_of
from dy2st.values.undefined import UNSET, Undefined

# What a side of a case is, where that side has no such case.
MISSING = object()


def kind_of(value: Any, signature: Callable[[Any], Any]) -> Any:
    """What two cases must have in common to be one; ``signature`` says it of containers."""
    if value is UNSET:
        return ("unset",)
    if isinstance(value, torch.Tensor):
        return ("tensor", value.dtype, value.dim())
    number = number_kind(value)
    if number is not None:
        return ("number", number)
    opened = signature(value)
    if opened is not None:
        return ("container", opened)
    if isinstance(value, types.MethodType):
        return ("method", id(value.__func__), id(value.__self__))
    if isinstance(value, types.FunctionType):
        return ("function", *same_function(value))
    if isinstance(value, (str, bytes, complex, slice, range, type(None), torch.dtype, torch.device)):
        return ("value", type(value), text_of(value))
    return ("object", id(value))


def same_function(function: types.FunctionType) -> tuple[Any, ...]:
    """What two runs of one ``def`` statement have in common, if what they make does the same."""
    cells = tuple(map(id, function.__closure__ or ()))
    keywords = sorted((function.__kwdefaults__ or {}).items())
    defaults = (*map(id, function.__defaults__ or ()), *((name, id(value)) for name, value in keywords))
    return id(function.__code__), id(function.__globals__), cells, defaults, tuple(map(id, vars(function).values()))


def sorted_out(
    a: Any, b: Any, signature: Callable[[Any], Any], known: tuple[Any, ...] = ()
) -> tuple[Any, Any, list[tuple[Any, Any, Any]]] | None:
    """The tags of both sides and the cases, each as (kind, a's value, b's value); ``known`` kinds come first.

    A side that is MISSING altogether has the tag MISSING. None if the values can't be cases.
    """
    rows: dict[Any, list[Any]] = {kind: [MISSING, MISSING] for kind in known}
    numbers: list[list[int]] = []
    for side, value in enumerate((a, b)):
        numbers.append([])
        for case in () if value is MISSING else cases_of(value):
            if isinstance(case, (Undefined, StackedList, TaggedUnion)):
                return None
            kind = kind_of(case, signature)
            row = rows.setdefault(kind, [MISSING, MISSING])
            if row[side] is not MISSING and row[side] is not case:
                return None
            row[side] = case
            numbers[side].append(list(rows).index(kind))
    if len(rows) > MOST_CASES:
        return None
    tags = [_tag(v, n) for v, n in zip((a, b), numbers, strict=True)]
    return tags[0], tags[1], [(kind, x, y) for kind, (x, y) in rows.items()]


def _tag(value: Any, numbers: list[int]) -> Any:
    if value is MISSING:
        return MISSING
    if not isinstance(value, TaggedUnion):
        return numbers[0]
    tag = tag_of(value)
    return tag if numbers == list(range(len(numbers))) else Retagged(tag, numbers)
