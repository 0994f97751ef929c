"""Frames of the user's code: the line that one is at, and its variables."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from dy2st.values.undefined import UNSET


def snapshot(frame: FrameType) -> dict[Any, Any]:
    """The variables of a frame: locals, and globals behind them for names declared global."""
    return dict(frame.f_locals)


def look_up(env: dict[Any, Any], name: Any, frame: FrameType | None = None) -> Any:
    """A variable's value in a snapshot, or UNSET."""
    if name in env:
        return env[name]
    if frame is not None and isinstance(name, str) and name not in frame.f_code.co_varnames:
        return frame.f_globals.get(name, UNSET)
    return UNSET


def users_frame() -> FrameType:
    """The innermost frame that runs neither our code nor torch's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in ("dy2st", "torch"):
            return frame
        frame = frame.f_back
    return sys._getframe(1)
