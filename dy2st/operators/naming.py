"""What the user calls a container, and the refusal of a change of its structure."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from dy2st.errors import (
    DifferentDtypesError,
    DifferentRanksError,
    KeysChangeError,
    ListChangeError,
    Location,
    StagingError,
)
from dy2st.graph.join import Lost
from dy2st.graph.journal import Slot
from dy2st.graph.places import is_users


def name_of(owner: Any) -> str | None:
    """The variable, or the attribute of one, that holds an object: as the innermost of the user's frames has it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            for name, value in frame.f_locals.items():
                if value is owner:
                    return name
            for name, value in frame.f_locals.items():
                for attribute, held in getattr(value, "__dict__", {}).items():
                    if held is owner:
                        return f"{name}.{attribute}"
        frame = frame.f_back
    return None


def changed(slot: Slot, lost: Lost, where: str, location: Location) -> StagingError:
    """The error of a container whose structure differs by path, or from one trip of a loop to the next."""
    name = name_of(slot.owner)
    called = repr(name) if name is not None else str(slot)
    what = f"{called} is changed {where}: {lost.reason}"
    if lost.kind in (DifferentDtypesError, DifferentRanksError):
        return lost.kind(what, hint=lost.hint, location=location)
    if isinstance(slot.owner, (dict, set)):
        hint = "give it the same keys on every path, before the branch or loop"
        return KeysChangeError(what, hint=hint, location=location)
    hint = "only append, tensors or numbers; in place of taking elements out, keep a count or a mask"
    return ListChangeError(what, hint=hint, location=location)
