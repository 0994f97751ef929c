"""``[0] * n`` where n is data-dependent: a list of rows.

Only of numbers: ``[tensor] * n`` is the same tensor n times, which a change in place of one would change everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from dy2st.errors import DynamicLengthError
from dy2st.source.user_frames import is_users_frame
from dy2st.staging.session import MODE, Session
from dy2st.tracing.replaced import replaced
from dy2st.values.number import Number, number_kind, symbolic
from dy2st.values.stacked_list import StackedList, row_list


def repeated(capture: Session, values: list[Any], count: Any) -> list[Any]:
    """``values * count``."""
    if not all(number_kind(value) is not None for value in values):
        raise DynamicLengthError(
            "a list of something other than numbers is repeated a data-dependent number of times",
            hint="make each element anew: [torch.zeros(3) for _ in range(n)]",
        )
    times = torch.sym_max(symbolic(count), 0)
    made: list[Any] = []
    if values:
        rows = row_list(values)
        columns = [column.expand([times, *column.shape]).flatten(0, 1).clone() for column in rows.columns]
        made.append(StackedList(columns, rows.element))
    capture.new(made)
    return made


def _multiplied(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def multiply(number: Any, other: Any) -> Any:
        if (
            isinstance(other, list)
            and (capture := MODE.capture) is not None
            and (isinstance(number, torch.SymInt) or number_kind(number) is int)
            and is_users_frame(sys._getframe(1))
        ):
            return repeated(capture, other, number)
        return original(number, other)

    return multiply


def lists_repeated() -> AbstractContextManager[None]:
    """While a capture runs: data-dependent numbers multiply lists."""
    names = ("__mul__", "__rmul__")
    return replaced((k, name, _multiplied(getattr(k, name))) for k in (torch.SymInt, Number) for name in names)
