"""Functions that say how the process is set: how many threads torch uses, whether a logger logs, where a seed began.

They can be asked again, and cost little. So a program of ``to_static`` keeps what they answered to the user's code, and
runs as long as they answer the same.

The rule is by name: of torch's functions and Python's, those that get or tell something and are given constants alone.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, NamedTuple

_TELLING = re.compile(
    r"(get_\w+|is_\w*(enabled|available|built|initialized)|are_\w+|initial_seed|\w+_count|current_\w+)$"
)
_OF_LOGGERS = frozenset(("isEnabledFor", "getEffectiveLevel", "hasHandlers", "getChild"))
_NAMED = frozenset((sys.getrecursionlimit, threading.get_ident, threading.current_thread, logging.getLogger))


class Answer(NamedTuple):
    """What a function said to some arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    said: Any


def is_asking(function: Any) -> bool:
    """Whether a function is one that tells how the process is set."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if isinstance(owner, logging.Logger):
        return name in _OF_LOGGERS
    if not isinstance(function, (types.FunctionType, types.BuiltinFunctionType)):
        return False
    home = getattr(function, "__module__", None) or ""
    of_torch = home.partition(".")[0] == "torch" and (owner is None or isinstance(owner, types.ModuleType))
    return function in _NAMED or (of_torch and _TELLING.match(name) is not None)


def noting(function: Callable[..., Any], found: Callable[..., Any], answers: list[Answer]) -> Callable[..., Any]:
    """``found`` is what is called in place of ``function``; what that says is noted."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        said = found(*args, **kwargs)
        answers.append(Answer(function, args, kwargs, said))
        return said

    return ask
