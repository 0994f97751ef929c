"""Loggers of loguru's in code whose program runs in its place: a run says the same, of the line that has said it.

loguru finds the caller by its frame. So it is called from a function that is at that line of that file.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

LEVELS = frozenset("trace debug info success warning error critical log".split())
# Of what a logger is told by opt(), what says something of the caller or calls code.
_DEPTH, _EXCEPTION, _LAZY, _PATCHERS = 1, 0, 3, -2

Caller = tuple[str, int, str, dict[str, Any]]


def is_logger(value: Any) -> bool:
    """Whether something is one of its loggers."""
    return (type(value).__module__, type(value).__qualname__) == ("loguru._logger", "Logger")


def depth_of(logger: Any) -> int:
    """How many calls out the code is that a logger names."""
    return int(logger._options[_DEPTH])


def is_sayable(logger: Any, constants: tuple[type, ...]) -> bool:
    """Whether a logger is given constants alone, and calls none of the user's code."""
    options = logger._options
    plain = not (options[_EXCEPTION] or options[_LAZY] or options[_PATCHERS])
    return plain and all(isinstance(each, constants) for each in options[-1].values())


def said_from(method: Callable[..., Any], callers: Sequence[Caller]) -> Callable[..., Any]:
    """``method``, called from a function that looks like the first of these, called from one like the second..."""
    for file, line, name, namespace in callers:
        method = functools.partial(_function_at(file, line, name, namespace), method)
    return method


def _function_at(file: str, line: int, name: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    text = "\n" * (line - 1) + "def call(function, /, *args, **kwargs): return function(*args, **kwargs)"
    made = next(each for each in compile(text, file, "exec").co_consts if isinstance(each, types.CodeType))
    names = {each: namespace.get(each) for each in ("__name__", "__file__")}
    return types.FunctionType(made.replace(co_name=name, co_qualname=name), names)
