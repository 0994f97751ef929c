"""Values that are told apart by type and value alone."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import functools
import pathlib
import re
import types
import uuid
import zoneinfo
from typing import Any

import numpy as np
import torch

from dy2st.guards.names import is_users_class, is_users_code

# Told apart by their text, since equal ones differ: 0.0 and -0.0, 1.0 and 1.00, a time in two zones, empty ranges. And
# a NaN is the NaN that it was.
_BY_TEXT = (
    *(float, complex, np.generic, torch.finfo, torch.iinfo, decimal.Decimal, range),
    *(dt.date, dt.time, dt.timedelta, dt.tzinfo),
)
_FAMILIES = (np.generic, dt.date, dt.time, dt.timedelta, dt.tzinfo, pathlib.PurePath)
_EXACT = frozenset(
    (
        *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, slice),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.finfo, torch.iinfo, torch.Size),
        *(decimal.Decimal, fractions.Fraction, re.Pattern, uuid.UUID, types.CodeType),
    )
)


_ZONES = (type(None), dt.timezone, zoneinfo.ZoneInfo)


def is_constant(value: Any) -> bool:
    """Whether a value is one that nobody can change, and that ``constant_key`` tells from others.

    Objects of the user's own classes are none, whatever these derive from: their methods read more than the value, and
    they may hold more. A member of an enum without methods, whose value is a constant, is one.
    """
    kind: Any = type(value)
    if kind in _EXACT:
        return True
    if isinstance(value, enum.Enum):
        return _is_plain_enum(kind) and vars(value).keys() <= _OF_MEMBERS and is_constant(value._value_)
    return isinstance(value, _FAMILIES) and not is_users_class(kind) and type(getattr(value, "tzinfo", None)) in _ZONES


_OF_MEMBERS = frozenset(("_value_", "_name_", "__objclass__", "_sort_order_"))


@functools.lru_cache(maxsize=4096)
def _is_plain_enum(kind: type) -> bool:
    """Whether an enum has no methods of the user's."""
    members = (member for base in kind.__mro__ for member in vars(base).values())
    return not any(_is_users(member) for member in members)


def _is_users(member: Any) -> bool:
    held = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
    if isinstance(held, types.FunctionType):
        return is_users_code(held.__code__)
    return hasattr(type(held), "__get__") and is_users_class(type(held)) and not isinstance(held, enum.Enum)


def constant_key(value: Any) -> Any:
    """What is equal for values that are the same: 1 is not True, nor 1.0."""
    if isinstance(value, enum.Enum):
        return type(value), value.name, constant_key(value._value_)
    if isinstance(value, slice):
        return slice, *(constant_key(each) for each in (value.start, value.stop, value.step))
    return type(value), repr(value) if isinstance(value, _BY_TEXT) else value
