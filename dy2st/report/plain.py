"""Results as what JSON can hold, and back: for other processes, and for files that are read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dataclasses and mappings as dicts, sequences as lists; infinities and NaN stay numbers, as Python's json has it.

    Raises:
        ValueError: there is something else inside.
    """
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=_of_a_plain_type)
    except TypeError as error:
        raise ValueError(str(error)) from error


def from_plain(kind: type[T], value: Any) -> T:
    """What :func:`to_plain` was given, of which only the type is known; keys that it doesn't know are left out.

    Raises:
        ValueError: the value is none of that type.
    """
    return msgspec.convert(value, kind)


def _of_a_plain_type(value: Any) -> Any:
    """A number or text of a class of its own, as numpy has them, or a view of a dict."""
    plain: tuple[tuple[type, Any], ...] = ((int, int), (float, float), (str, str), (Mapping, dict))
    for kind, made in plain:
        if isinstance(value, kind):
            return made(value)
    raise TypeError(f"{type(value).__name__} is no plain value")
