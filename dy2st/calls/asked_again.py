"""Functions that say how the process is set: how many threads torch uses, whether a logger logs, where a seed began.

They can be asked again, and cost little. So a program of ``to_static`` keeps what they answered to the user's code, and
runs as long as they answer the same.

The rule is by name: of torch's functions and Python's, those that get or tell something and are given constants alone.
"""

from __future__ import annotations

import abc
import decimal
import gc
import locale
import logging
import re
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from dy2st.source.user_frames import module_of

_TELLING = re.compile(
    r"(get_\w+|is_\w*(enabled|available|built|initialized)|are_\w+|initial_seed|\w+_count|current_\w+)$"
)
# Of Python's functions that are written in C, and say how the process is.
_OF_PYTHON = frozenset(
    (
        *(sys.getrecursionlimit, sys.getswitchinterval, sys.getdefaultencoding, sys.getfilesystemencoding),
        *(gc.isenabled, gc.get_threshold, threading.get_ident, threading.active_count),
        *(threading.main_thread, logging.getLogger, decimal.getcontext, locale.getlocale, locale.localeconv),
        abc.get_cache_token,
    )
)
_OF_LOGGERS = frozenset(("isEnabledFor", "getEffectiveLevel", "hasHandlers", "getChild"))


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
    if isinstance(owner, type) and name == "__subclasses__":
        return True
    home = module_of(function)
    of_torch = home.partition(".")[0] == "torch" and (owner is None or isinstance(owner, types.ModuleType))
    of_numpy = home.partition(".")[0] == "numpy" and name in ("geterr", "get_printoptions")
    return function in _OF_PYTHON or of_numpy or (of_torch and _TELLING.match(name) is not None)


def noting(function: Callable[..., Any], found: Callable[..., Any], answers: list[Answer]) -> Callable[..., Any]:
    """``found`` is what is called in place of ``function``; what that says is noted."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        said = found(*args, **kwargs)
        answers.append(Answer(function, args, kwargs, said))
        return said

    return ask


def noting_registries(found: Callable[..., Any], answers: list[Answer]) -> Callable[..., Any]:
    """``found`` is called in place of ``isinstance`` or ``issubclass``; an abstract class may come to say otherwise."""

    def ask(value: Any, classes: Any) -> Any:
        said = found(value, classes)
        several = classes if isinstance(classes, tuple) else (classes,)
        if any(isinstance(each, abc.ABCMeta) for each in several):
            answers.append(Answer(abc.get_cache_token, (), {}, abc.get_cache_token()))
        return said

    return ask
