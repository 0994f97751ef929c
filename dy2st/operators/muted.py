"""The value of a statement that is muted."""

from __future__ import annotations

from typing import Any


def muted(*_: Any) -> Any:
    """What a muted statement evaluates to."""
    from dy2st.values.error_recovery import RecoveryValue

    return RecoveryValue()
