"""Attributes that a class gives to its objects until they have their own: ``total = 0`` in the class body.

Where an object gets its own under a tensor condition, it has one on some paths and its class's on the others. So it is
given the class's value as its own first. Nothing can tell that apart save a later change of the class.

Source: Python reference 3.3.2 (attributes are looked up in the object, then in its class).
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from dy2st.calls.python_functions import of_the_user
from dy2st.errors import DifferentStructureError
from dy2st.values.journal import Slot
from dy2st.values.undefined import UNSET

if TYPE_CHECKING:
    from dy2st.capture.capturing import Capture

# What an object sees as something of its own.
METHODS = (types.FunctionType, classmethod, staticmethod)


def member(owner: Any, name: str, default: Any = None) -> Any:
    """What the class of an object has under a name, as it stands there."""
    return next((vars(cls)[name] for cls in type(owner).__mro__ if name in vars(cls)), default)


def _of_class(owner: Any, name: str) -> Any:
    """What the class gives, or UNSET; what computes its value each time it is read is none."""
    value = member(owner, name, UNSET)
    if isinstance(value, METHODS):
        return getattr(owner, name)
    return UNSET if hasattr(type(value), "__get__") else value


def before_store(capture: Capture, owner: Any, name: str) -> None:
    """A store to an attribute follows: under a condition the object has the class's value before it."""
    if isinstance(owner, type):
        if any(name == given and issubclass(cls, owner) for cls, given in capture.class_defaults):
            raise DifferentStructureError(
                f"{owner.__name__}.{name} is changed after an object got an attribute of that name on some paths only",
                hint="change the class first, or set the attribute in __init__",
            )
        return
    if capture.depth > 1 and Slot.of("attribute", owner, name).get() is UNSET:
        give(capture, owner, name)


def give(capture: Capture, owner: Any, name: str) -> None:
    """Let an object that has none have its class's value as its own."""
    value = _of_class(owner, name)
    if value is UNSET:
        made_here = capture.trace_frames[-1].owns(id(owner))
        if of_the_user(member(owner, "__getattr__")) and not made_here:
            raise DifferentStructureError(
                f"{type(owner).__name__}.{name} is set on some paths only, and __getattr__ gives it on the others",
                hint="set the attribute in __init__",
            )
        return
    slot = Slot.of("attribute", owner, name)
    outermost = capture.trace_frames[0]
    if not outermost.owns(slot.identity):
        outermost.journal.touch(slot)
    slot.set(value)
    capture.class_defaults.append((type(owner), name))
