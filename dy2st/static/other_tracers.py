"""What other tracers ask of a static function: ``torch.export`` runs the code behind it, the others are sent there.

``torch.fx`` asks of what it is given whether it is a function; ``torch.jit.script`` calls ``__prepare_scriptable__``.
"""

from __future__ import annotations

import sys
import types
from typing import Any, NoReturn

import torch.fx

from dy2st.errors import UsageError

_TRACER = sys.modules[torch.fx.Tracer.__module__].__file__


class TracedByOthers:
    """The attributes of a function that tracers read; mixed into static functions."""

    _function: Any

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The type; ``isinstance(_, FunctionType)`` asks for it."""
        asking = sys._getframe(1).f_code
        # Its method may have been wrapped meanwhile.
        if asking.co_name == "trace" and asking.co_filename == _TRACER:
            refuse("torch.fx.symbolic_trace")
        return type(self)

    @property
    def __code__(self) -> types.CodeType:
        found: types.CodeType = self._function.__code__
        return found

    @property
    def __globals__(self) -> dict[str, Any]:
        found: dict[str, Any] = self._function.__globals__
        return found

    def __prepare_scriptable__(self) -> NoReturn:
        """Called by ``torch.jit.script``."""
        refuse("torch.jit.script")


def refuse(tracer: str) -> NoReturn:
    """Tell the user of another tracer what to give it.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        f"{tracer} is given a static function: what it would trace is how dy2st runs a program",
        hint="give it the original (static.original), or use a program: static.export(...), dy2st.export(...)",
    )
