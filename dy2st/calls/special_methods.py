"""Special methods of users' classes that Python's own code calls: ``bool(x)``, ``len(x)``, ``x.a = 1``.

A class that is converted has its special methods rewritten, but Python demands of some that they return one of its own
types, which a staged number is not; and stores by ``object.__setattr__`` are no statements. So these are called here.

Source: Python reference 3.3.1 and 3.3.2.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dy2st.calls import class_defaults
from dy2st.calls.class_defaults import member
from dy2st.calls.python_functions import of_the_user
from dy2st.conversion import is_left_alone
from dy2st.operators.mode import MODE
from dy2st.staging.memory.untracked_mutation import refuse_lost_part, refuse_new_part
from dy2st.values.journal import Slot

if TYPE_CHECKING:
    from dy2st.capture.capturing import Capture

# What stores an attribute in the object itself.
STORING: tuple[Any, ...] = (object.__setattr__, torch.nn.Module.__setattr__)
DELETING: tuple[Any, ...] = (object.__delattr__, torch.nn.Module.__delattr__)


def special(owner: Any, name: str) -> Callable[..., Any] | None:
    """A special method that the user has written for an object, converted; None without."""
    if MODE.capture is None or type(owner).__module__ == "builtins" or is_left_alone(owner):
        return None
    method = member(owner, name)
    return MODE.capture.call(types.MethodType(method, owner)) if of_the_user(method) else None


def store(capture: Capture, owner: Any, name: str, value: Any, into: Callable[[Any, str, Any], None]) -> None:
    """A store to an attribute of the object itself, recorded."""
    class_defaults.before_store(capture, owner, name)
    refuse_new_part(capture, owner, name, value)
    slot = Slot.of("attribute", owner, name)
    capture.touch(slot)
    if isinstance(owner, torch.nn.Module) and name in owner.__dict__.get("_buffers", ()):
        # torch.export watches assignments to buffers, but knows no subgraphs: the end of the capture tells it.
        slot.set(value)
    else:
        into(owner, name, value)


def delete(capture: Capture, owner: Any, name: str, out_of: Callable[[Any, str], None]) -> None:
    """A deletion of an attribute of the object itself, recorded."""
    if isinstance(owner, type):
        class_defaults.before_store(capture, owner, name)
    refuse_lost_part(capture, owner, name)
    capture.touch(Slot.of("attribute", owner, name))
    out_of(owner, name)
    if capture.depth > 1:
        class_defaults.give(capture, owner, name)


def storing(capture: Capture, function: Any) -> Callable[..., Any] | None:
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
