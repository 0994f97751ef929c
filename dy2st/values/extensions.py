"""Functions written in C that a package has, and tensors of a trace among what they are given.

Such a function sees a tensor as an object. It may hand it on, keep it in what it makes, ask for its type: that is as in
eager. What it may know of the values it has to ask Python for: a text, a number, a truth value, bytes, an array. Where
it has asked, the call is refused, whatever it made of the answer: C code may take an exception for one.

This is no rule for Python's own library, whose functions are known one by one, nor for numpy.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Any

from dy2st.errors import UnconvertedCallError
from dy2st.source.user_frames import users_frame

# The methods of a tensor that give its values, or something that is made of them.
_READING = frozenset(
    "__repr__ __str__ __format__ __reduce_ex__ __deepcopy__ __array__ __dlpack__ __contains__ __complex__ __float__ "
    "__int__ __index__ __bool__ __len__ numpy tolist item data_ptr untyped_storage equal is_nonzero".split()
)


@dataclass
class _Running:
    """An extension's function that runs, the user's frame that has called it, and what it has asked a tensor for."""

    frame: FrameType | None
    asked: bool = False


_RUNNING: ContextVar[_Running | None] = ContextVar("_RUNNING", default=None)


def is_extension(function: Any) -> bool:
    """Whether a function or method is C code of a package, other than numpy's."""
    if isinstance(function, types.MethodType) and not isinstance(function.__func__, types.FunctionType):
        home = type(function.__self__).__module__
    elif isinstance(function, types.BuiltinFunctionType):
        owner = function.__self__
        of_module = owner is None or isinstance(owner, types.ModuleType)
        home = function.__module__ or ("" if of_module else _class_of(owner).__module__)
    else:
        return False
    root = str(home).partition(".")[0].removeprefix("_")
    return bool(root) and root not in sys.stdlib_module_names and root not in ("numpy", "torch")


def _class_of(owner: Any) -> type:
    return owner if isinstance(owner, type) else type(owner)


@contextmanager
def running(function: Any, name: str) -> Iterator[None]:
    """While ``function`` runs, which a message calls ``name``.

    Raises:
        UnconvertedCallError: it is an extension's, and has asked a tensor for its values.
    """
    if not is_extension(function):
        yield
        return
    state = _Running(users_frame())
    token = _RUNNING.set(state)
    try:
        yield
    finally:
        _RUNNING.reset(token)
        if state.asked:
            raise UnconvertedCallError(
                f"{name}(), which dy2st does not convert, asks a data-dependent tensor for its values",
                hint="compute with Python's operators, with torch functions, or with code that dy2st converts",
            )


def note_reading(name: str) -> None:
    """A tensor's method ``name`` is called: by an extension's function, if no Python code of the user's is between."""
    state = _RUNNING.get()
    if state is not None and name in _READING and users_frame() is state.frame:
        state.asked = True
