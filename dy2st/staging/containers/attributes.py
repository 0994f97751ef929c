"""Attributes that converted code stores: recorded first, and made certain where the class has a default.

Where an object gets an attribute of its own under a tensor condition, it has one on some paths and its class's
(``total = 0`` in the class body) on the others. So it is given the class's value as its own first. Nothing can tell
that apart save a later change of the class. ``storing`` stands for ``object.__setattr__``, which is no statement.

Source: Python reference 3.3.2 (attributes are looked up in the object, then in its class).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from dy2st.errors import DifferentStructureError
from dy2st.staging.session import Session
from dy2st.staging.untracked_mutation import refuse_lost_part, refuse_new_part
from dy2st.staging.users_code import member, of_the_user
from dy2st.values.journal import Slot
from dy2st.values.references import is_reference
from dy2st.values.undefined import UNSET

# What an object sees as something of its own.
METHODS = (types.FunctionType, classmethod, staticmethod)


def _of_class(owner: Any, name: str) -> Any:
    """What the class gives, or UNSET; what computes its value each time it is read is none."""
    value = member(owner, name, UNSET)
    if isinstance(value, METHODS):
        return getattr(owner, name)
    return UNSET if hasattr(type(value), "__get__") else value


def before_store(capture: Session, owner: Any, name: str) -> None:
    """A store to an attribute follows: under a condition the object has the class's value before it."""
    if isinstance(owner, type):
        if any(name == given and issubclass(cls, owner) for cls, given in capture.class_defaults):
            raise DifferentStructureError(
                f"{owner.__name__}.{name} is changed after an object got an attribute of that name on some paths only",
                hint="change the class first, or set the attribute in __init__",
            )
        return
    if capture.depth > 1 and Slot.of("attribute", owner, name).get() is UNSET:
        give_default(capture, owner, name)


def give_default(capture: Session, owner: Any, name: str) -> None:
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


# What stores an attribute in the object itself.
STORING: tuple[Any, ...] = (object.__setattr__, torch.nn.Module.__setattr__)
DELETING: tuple[Any, ...] = (object.__delattr__, torch.nn.Module.__delattr__)


def store(capture: Session, owner: Any, name: str, value: Any, into: Callable[[Any, str, Any], None]) -> None:
    """A store to an attribute of the object itself, recorded."""
    if is_reference(owner):
        setattr(owner, name, value)
        return
    before_store(capture, owner, name)
    refuse_new_part(capture, owner, name, value)
    slot = Slot.of("attribute", owner, name)
    capture.touch(slot)
    if isinstance(owner, torch.nn.Module) and name in owner.__dict__.get("_buffers", ()):
        # torch.export watches assignments to buffers, but knows no subgraphs: the end of the capture tells it.
        slot.set(value)
    else:
        into(owner, name, value)


def delete(capture: Session, owner: Any, name: str, out_of: Callable[[Any, str], None]) -> None:
    """A deletion of an attribute of the object itself, recorded."""
    if is_reference(owner):
        delattr(owner, name)
        return
    if isinstance(owner, type):
        before_store(capture, owner, name)
    refuse_lost_part(capture, owner, name)
    capture.aliases.check_change(owner)
    capture.touch(Slot.of("attribute", owner, name))
    out_of(owner, name)
    if capture.depth > 1:
        give_default(capture, owner, name)


def storing(capture: Session, function: Any) -> Callable[..., Any] | None:
    """What stands for ``object.__setattr__``, ``super().__setattr__`` and their like; None for other functions."""
    name = getattr(function, "__name__", "")
    if name not in ("__setattr__", "__delattr__"):
        return None
    owner = getattr(function, "__self__", None)
    plain = getattr(function, "__func__", function)
    if owner is not None and plain is function:
        plain = getattr(object, name) if getattr(function, "__objclass__", object) is object else None
    given: tuple[Any, ...] = () if owner is None else (owner,)

    def stored(*args: Any) -> None:
        target, attribute, value = (*given, *args)
        store(capture, target, attribute, value, plain)

    def deleted(*args: Any) -> None:
        target, attribute = (*given, *args)
        delete(capture, target, attribute, plain)

    if any(plain is each for each in STORING):
        return stored
    return deleted if any(plain is each for each in DELETING) else None
