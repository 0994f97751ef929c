"""``set`` and ``reset`` of a ``contextvars.ContextVar``: stores to a place, as an assignment of a global is."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import NoneType
from typing import Any

from dy2st.staging.flow import StagedJump
from dy2st.staging.session import Session
from dy2st.values import context_variables
from dy2st.values.journal import Slot


def bound_context_method(capture: Session, method: Any) -> Callable[..., Any] | None:
    """What stands for a bound method that stores to a context variable, or None."""
    owner = getattr(method, "__self__", None)
    stands = {"set": _set, "reset": _reset}.get(method.__name__)
    if not isinstance(owner, ContextVar) or stands is None:
        return None
    return functools.partial(stands, capture, owner)


def _set(capture: Session, variable: ContextVar[Any], value: Any, /) -> Any:
    capture.touch(Slot.of("context", variable, variable.name))
    return capture.new(context_variables.given(variable, value))


def _reset(capture: Session, variable: ContextVar[Any], token: Token[Any], /) -> None:
    if isinstance(sys.exception(), (NoneType, StagedJump)) and not capture.trace_frames[-1].owns(id(token)):
        # Python takes a token once, so that a path that has used it is not like one that has not. (Where an exception
        # ends this, whatever is above the place that made the token is given up.)
        capture.refuse_change(variable, "reset() with a token that was made before")
    capture.touch(Slot.of("context", variable, variable.name))
    context_variables.reset(variable, token)
