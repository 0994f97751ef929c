"""Exceptions that Python itself waits for, without a ``try``: they are no errors of the model.

``StopIteration`` of ``__next__`` ends a ``for``, ``AttributeError`` of a lookup asks ``__getattr__`` next, or is what
``hasattr`` wants to know, and ``IndexError`` of ``__getitem__`` ends the iteration of an object without ``__iter__``.
Where it is data-dependent whether they are raised, a guard would let the program fail where eager goes on.

Source: Python reference 3.3.2, 3.3.7 and 8.3; the documentation of ``iter``, ``hasattr`` and ``collections.abc``.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from dy2st.errors import CaughtError, Location
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE
from dy2st.staging.trace_frame import Watch

ATTRIBUTE = ("AttributeError",)
# By the special method that raises them.
AWAITED = {
    "__next__": ("StopIteration",),
    "__getattr__": ATTRIBUTE,
    "__get__": ATTRIBUTE,
    "__getitem__": ("IndexError", "StopIteration"),
}


def awaiting(function: Callable[..., Any], kinds: tuple[str, ...]) -> Callable[..., Any]:
    """A converted special method; Python waits for exceptions of ``kinds`` from it."""
    caught = tuple(getattr(builtins, kind) for kind in kinds)
    subscript = kinds == AWAITED["__getitem__"]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        capture = MODE.capture
        if capture is None or (subscript and not _iterates(args[0], sys._getframe(1))):
            return function(*args, **kwargs)
        depth = capture.depth
        capture.implicit_exceptions.append(Watch(depth, kinds))
        try:
            return function(*args, **kwargs)
        except caught as error:
            if capture.depth != depth:
                raise refusal(type(error).__name__, location_of(users_frame())) from error
            raise
        finally:
            capture.implicit_exceptions.pop()

    return call


def refusal(kind: str, location: Location | None) -> CaughtError:
    """What to say of an exception under a tensor condition."""
    return CaughtError(
        f"{kind} is raised under a tensor condition, and Python waits for it (it ends an iteration, or a lookup): "
        "whether it is raised is data-dependent",
        hint="test for the case with an if in the loop, or where the attribute is read, in place of the exception",
        location=location,
    )


def exceptions_named(frame: FrameType) -> Iterator[type[Exception]]:
    """The exception types that a function's code names: one of them is what it raises."""
    for name in frame.f_code.co_names:
        kind = frame.f_globals.get(name, getattr(builtins, name, None))
        if isinstance(kind, type) and issubclass(kind, Exception):
            yield kind


def _iterates(owner: Any, caller: FrameType) -> bool:
    """Whether ``__getitem__`` is called for an iteration, and not by a subscript."""
    if "_collections_abc" in caller.f_code.co_filename:
        return True
    subscript = dis.opname[caller.f_code.co_code[caller.f_lasti]].startswith("BINARY_")
    return not subscript and not hasattr(type(owner), "__iter__")
