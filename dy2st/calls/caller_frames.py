"""The frames of the code that is captured, where it asks which function and line it is: a logger names its caller.

They are told by the source. What lies outside of the static function is another one in each call, and so are variables.

Source: Python library reference, ``inspect`` (frame objects).
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dy2st.calls.outside_world import Constants
from dy2st.errors import UnguardedError
from dy2st.operators.export_session import current
from dy2st.source.call_places import in_constant
from dy2st.source.user_frames import frames, is_users_frame, location_of, users_frame

_OF_CODE = ("co_name", "co_qualname", "co_filename", "co_firstlineno")
_OF_MODULES = ("__name__", "__file__", "__package__")


class Outermost:
    """The code that begins to run what is captured; a part of an export's session."""

    code: types.CodeType | None = None


def users_code_begins() -> None:
    """What is captured is called by the function that calls this."""
    current().part(Outermost).code = sys._getframe(1).f_code


def asking_for_frame(function: Any) -> Callable[..., Any] | None:
    """What to call in place of ``function``, if it gives frames and a program is to run in the code's place."""
    if current().part(Constants).everything or in_constant(location_of(users_frame())):
        return None
    if function is inspect.currentframe:
        return lambda: _frame(0)
    return _frame if function is sys._getframe else None


def _frame(depth: int = 0) -> CallerFrame:
    return CallerFrame(_inside()).out(depth)


def _inside() -> list[types.FrameType]:
    """The frames of the user's code that is captured, innermost first."""
    found: list[types.FrameType] = []
    for frame in frames(sys._getframe(1)):
        if frame.f_code is current().part(Outermost).code:
            break
        if is_users_frame(frame):
            found.append(frame)
    return found


def _refuse(what: str) -> NoReturn:
    raise UnguardedError(
        f"the code asks for {what} while it is traced: each run of the program would have the same",
        hint="ask for the name, the file or the line of functions inside, or pass it in as an argument",
        location=location_of(users_frame()),
    )


class CallerFrame:
    """Stands for one of these frames, whose callers are ``inside`` as well; it says where it is, and nothing else."""

    def __init__(self, inside: Sequence[types.FrameType]) -> None:
        if not inside:
            _refuse("the caller of the function that is made static")
        self._inside = inside
        code = inside[0].f_code
        self.f_code = types.SimpleNamespace(**{name: getattr(code, name) for name in _OF_CODE})
        self.f_globals = _NamesOfModule((name, inside[0].f_globals.get(name)) for name in _OF_MODULES)

    def out(self, depth: int) -> CallerFrame:
        """The frame that is so many calls out."""
        return CallerFrame(self._inside[depth:])

    @property
    def f_lineno(self) -> int:
        """The line that it is at now."""
        return location_of(self._inside[0]).line

    @property
    def f_back(self) -> CallerFrame:
        """The frame of the caller."""
        return self.out(1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _refuse(f"{name} of a frame")


class _NamesOfModule(dict[str, Any]):
    """Of the globals of a frame the names of its module alone."""

    def __missing__(self, key: str) -> NoReturn:
        _refuse(f"the global {key!r} of a frame")

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002  as that of dicts
        """As that of the globals: these names are there."""
        return self[key]
