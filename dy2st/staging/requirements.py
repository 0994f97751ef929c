"""What eager demands of values that only the graph knows, where it would raise: the graph fails there too."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from dy2st.source.places import is_users, location_of
from dy2st.staging.conditions import condition
from dy2st.staging.session import MODE
from dy2st.values.python_errors import may_raise


def require(test: Any) -> None:
    """Eager raises unless ``test``; so does the graph."""
    decided = condition(test)
    if decided is True or MODE.capture is None:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    assert frame is not None
    if decided is False:
        raise IndexError("index out of range, or another number of pieces")
    may_raise(IndexError, "this index, or number of pieces,")
    MODE.capture.guards.require(decided, location_of(frame), always=True)


def demand(test: Any) -> None:
    """As ``require``; what follows is traced with the knowledge that it holds."""
    require(test)
    if MODE.capture is not None:
        MODE.capture.tracing.assume(test)
