"""Changes of objects other than Python's containers: no end of an arm could undo them, so they are refused."""

from __future__ import annotations

import array
import contextvars
import queue
from typing import TYPE_CHECKING, Any

import torch

from dy2st.errors import LeakedValueError
from dy2st.graph.describing import article
from dy2st.operators.class_defaults import member
from dy2st.operators.python_functions import of_the_user

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture

_CHANGING: dict[type, frozenset[str]] = {
    contextvars.ContextVar: frozenset(("set", "reset")),
    queue.SimpleQueue: frozenset(("put", "put_nowait", "get", "get_nowait")),
    array.array: frozenset("append extend pop insert remove reverse fromlist frombytes byteswap".split()),
}


def refuse_change(capture: Capture, owner: Any, what: str) -> None:
    """Nothing of this kind may change under a condition."""
    if capture.depth > 1:
        raise LeakedValueError(
            f"{article(type(owner).__name__)} is changed by {what} under a tensor condition or in a staged loop, "
            "unseen by dy2st",
            hint="change it before or after, or use a list, a dict, an attribute or a tensor in its place",
        )


def refuse_method(capture: Capture, owner: Any, name: str) -> None:
    """A method of a built-in type is called."""
    if any(isinstance(owner, kind) and name in names for kind, names in _CHANGING.items()):
        refuse_change(capture, owner, f"{name}()")


def refuse_item(capture: Capture, owner: Any) -> None:
    """An item is stored or deleted of what is neither a container nor a tensor: fine where the user's code does it."""
    ours = type(owner).__module__.split(".")[0] == "dy2st"
    if (
        not ours
        and not isinstance(owner, torch.Tensor)
        and not any(of_the_user(member(owner, name)) for name in ("__setitem__", "__delitem__"))
    ):
        refuse_change(capture, owner, "a subscript")
