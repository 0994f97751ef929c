"""Calls: followed into the user's code under a capture, native otherwise."""

from __future__ import annotations

from typing import Any

from dy2st.operators.mode import MODE


def call(function: Any) -> Any:
    """What to call in place of ``function``."""
    return function if MODE.capture is None else MODE.capture.call(function)
