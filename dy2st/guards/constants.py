"""Values that are told apart by type and value alone."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import pathlib
import re
import types
import uuid
from typing import Any

import numpy as np
import torch

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


def is_constant(value: Any) -> bool:
    """Whether a value is one that nobody can change, and that ``constant_key`` tells from others."""
    return type(value) in _EXACT or isinstance(value, (enum.Enum, *_FAMILIES))


def constant_key(value: Any) -> Any:
    """What is equal for values that are the same: 1 is not True, nor 1.0."""
    if isinstance(value, enum.Enum):
        return type(value), value.name
    if isinstance(value, slice):
        return slice, *(constant_key(each) for each in (value.start, value.stop, value.step))
    return type(value), repr(value) if isinstance(value, _BY_TEXT) else value
