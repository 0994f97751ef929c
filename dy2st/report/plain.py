"""Results as what JSON can hold, and back: for other processes, and for files that are read again."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dy2st.errors import Location
from dy2st.report.graph_drawing import Drawing
from dy2st.report.listing import Listing
from dy2st.report.parity_report import ParityReport

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dataclasses and mappings as dicts, sequences as lists; infinities and NaN stay numbers, as Python's json has it.

    Raises:
        ValueError: there is something else inside.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"{type(value).__name__} is no plain value")


def from_plain(kind: type[T], value: Any) -> T:
    """What :func:`to_plain` was given, of which only the type is known.

    Raises:
        ValueError: the value is none of that type.
    """
    found: T = _made(kind, value)
    return found


def _made(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin in {Union, types.UnionType}:
        return _one_of(get_args(kind), value)
    if origin is Literal:
        return _accepted(value, value in get_args(kind), kind)
    if origin in {tuple, list}:
        return _sequence(origin, get_args(kind), _accepted(value, isinstance(value, list), kind))
    if origin is dict:
        inner = get_args(kind)[1]
        return {key: _made(inner, each) for key, each in _accepted(value, isinstance(value, dict), kind).items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        made: Any = kind
        hints = _hints(made)
        fits = isinstance(value, dict) and value.keys() <= hints.keys()
        try:
            return made(**{key: _made(hints[key], each) for key, each in _accepted(value, fits, kind).items()})
        except TypeError as error:  # something is missing
            raise ValueError(str(error)) from error
    if kind is float:
        return float(_accepted(value, isinstance(value, (int, float)), kind))
    return _accepted(value, isinstance(value, kind) and (kind is not int or not isinstance(value, bool)), kind)


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None:
        return _accepted(None, type(None) in kinds, kinds)
    for kind in kinds:
        if kind is not type(None):
            try:
                return _made(kind, value)
            except ValueError:
                continue
    return _accepted(value, False, kinds)


def _sequence(origin: Any, kinds: tuple[Any, ...], values: list[Any]) -> Any:
    if origin is list or kinds[1:] == (...,):
        return origin(_made(kinds[0], each) for each in values)
    fits = len(kinds) == len(values)
    return tuple(_made(kind, each) for kind, each in zip(kinds, _accepted(values, fits, kinds), strict=True))


def _accepted(value: Any, fits: bool, kind: Any) -> Any:
    if not fits:
        raise ValueError(f"{value!r:.60} is no {kind}")
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields, those included that its module imports for type checkers only."""
    known = {each.__name__: each for each in (Drawing, Location, Listing, ParityReport)}
    return get_type_hints(kind, vars(sys.modules[kind.__module__]), known)
