"""Clocks, files, other processes, what is printed: the world outside of the program, asked or told while it is traced.

A program of ``to_static`` runs again where all that its code read is what it was. Such a read can't be compared with
the last one, and what is printed would be printed once. So both are refused, except inside of ``dy2st.constant``, and
where the user has said that all is constant. An exported program is a snapshot by intent, and takes them as they are.

The rule is a list: of modules all of whose functions do so, and of single functions of others.
"""

from __future__ import annotations

import ast
import builtins
import datetime as dt
import functools
import io
import linecache
import logging
import os
import pathlib
import time
import types
import uuid
from typing import Any

import numpy as np
import torch

from dy2st.calls.asked_again import Answer
from dy2st.errors import LostStateError, UnguardedError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import Session
from dy2st.tracing.known_values import known_value
from dy2st.tracing.subgraph import storage_key
from dy2st.tracing.tracer import outside_the_trace

_MODULES = frozenset(
    "time _socket socket _posixsubprocess subprocess secrets select selectors tempfile shutil glob urllib.request "
    "http.client multiprocessing.connection getpass platform".split()
)
# Functions of those modules that ask nothing.
_HARMLESS = frozenset((time.sleep, time.mktime, time.strptime))
_NAMED = frozenset(
    (
        *(builtins.open, io.open, builtins.input, uuid.uuid1, uuid.uuid4, os.urandom, os.getpid, os.getcwd, os.listdir),
        *(os.scandir, os.stat, os.path.exists, os.path.isfile, os.path.isdir, os.path.getsize, os.path.getmtime),
        *(np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.memmap, torch.load, torch.from_file),
        *(os.walk, os.popen, os.system, os.remove, os.makedirs, os.mkdir, os.rename, os.cpu_count),
    )
)
_CLOCKS = frozenset("now today utcnow".split())
_OF_PATHS = frozenset(
    "exists is_file is_dir stat open read_text read_bytes write_text write_bytes iterdir glob rglob mkdir unlink touch "
    "cwd home resolve".split()
)
_LEVELS = {name: getattr(logging, name.upper(), logging.ERROR) for name in "debug info warning error critical".split()}
_LEVELS["exception"] = logging.ERROR

_OF_MEMORY = frozenset("requires_grad_ storage_offset is_conj is_neg".split())


class Constants:
    """What the user has declared to be read once; a part of the session of an export.

    ``differentiated`` says whether the program is to have gradients: if it runs in the code's place, unless told.
    ``answers`` are found by the capture.
    """

    def __init__(self, *, everything: bool = True, differentiated: bool | None = None) -> None:
        self.everything = everything
        self.differentiated = not everything if differentiated is None else differentiated
        # What the process has said of itself, which can be asked again.
        self.answers: list[Answer] = []


def constant_value(capture: Session, tensor: torch.Tensor) -> torch.Tensor | None:
    """The values of a tensor of constants, outside of the trace; None for any other tensor."""
    return known_value(capture.tracing, tensor, fixed=current().part(Constants).everything)


def array_of(capture: Session, tensor: torch.Tensor) -> Any:
    """The array that has the memory of a tensor of constants; None for any other tensor.

    Neither is written to from now on: the other one would change, too.
    """
    known = constant_value(capture, tensor)
    if known is None:
        return None
    capture.aliases.share_with_array(tensor)
    with outside_the_trace():
        made = known.numpy(force=True)
    made.flags.writeable = False
    capture.aliases.object_is_shared(made)
    return made


def check_place(capture: Session, method: Any) -> None:
    """``method`` is about to be called by the user's code: it may ask where in memory an input lies, and how.

    Each call has its own place; a trace works on tensors that begin where their memory does.

    Raises:
        UnguardedError: it asks that of an input, a parameter or a buffer.
        LostStateError: it makes such a tensor want a gradient, or no longer.
    """
    tensor = method.__self__
    if not isinstance(tensor, torch.Tensor) or method.__name__ not in _OF_MEMORY:
        return
    inputs, of_export = capture.shared_inputs, current().part(Constants).everything
    if method.__name__ == "requires_grad_" and inputs.is_one(tensor) and not of_export:
        raise LostStateError(
            "an input, a parameter or a buffer is told whether it wants a gradient, which a program does not tell it",
            hint="tell it before the call, or tell a copy: x.detach().requires_grad_()",
            location=location_of(users_frame()),
        )
    if method.__name__ in ("is_conj", "is_neg") and tensor.is_complex():
        raise UnguardedError(
            f"{method.__name__}() asks how a complex tensor is kept in memory, which a program does not know",
            hint="call resolve_conj() or resolve_neg(), which need not ask",
            location=location_of(users_frame()),
        )
    if method.__name__ == "storage_offset" and inputs.holds(storage_key(tensor)):
        raise UnguardedError(
            "storage_offset() asks where in its memory an input begins, which a program does not know",
            hint="pass the offset in as a number",
            location=location_of(users_frame()),
        )


def check_asking(function: Any) -> None:
    """``function`` is about to be called by the user's code, while it is traced.

    Raises:
        UnguardedError: it asks or tells the world outside, and the program is to run again in its place.
    """
    if current().part(Constants).everything:
        return
    what = _asked(function)
    if what is None or _inside_constant():
        return
    raise UnguardedError(
        f"{what} while the function is traced: each run of the program would have the same",
        hint="pass it in as an argument, or say that it is read once: dy2st.constant(...), to_static(..., freeze=True)",
        location=location_of(users_frame()),
    )


def _asked(function: Any) -> str | None:
    """What a function does to the outside, in words; None if it does nothing."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    if function is builtins.print:
        return "print() writes to a stream"
    if isinstance(owner, logging.Logger) and name in _LEVELS:
        return f"{name}() writes to a log" if owner.isEnabledFor(_LEVELS[name]) else None
    if isinstance(owner, type) and issubclass(owner, dt.date) and name in _CLOCKS:
        return f"{owner.__name__}.{name}() reads a clock"
    if isinstance(owner, io.IOBase) and not isinstance(owner, (io.StringIO, io.BytesIO)):
        return f"{name}() reads or writes a file"
    of_paths = isinstance(owner, pathlib.Path) or (isinstance(owner, type) and issubclass(owner, pathlib.Path))
    if of_paths and name in _OF_PATHS:
        return f"{name}() looks at files"
    if not isinstance(function, (types.FunctionType, types.BuiltinFunctionType, type)):
        return None
    if function in _NAMED or (_home(function) in _MODULES and function not in _HARMLESS):
        return f"{name}() asks the system"
    return None


def _home(function: Any) -> str:
    return getattr(function, "__module__", "") or ""


def _inside_constant() -> bool:
    """Whether the innermost call of the user's stands inside of the arguments of ``dy2st.constant``."""
    here = location_of(users_frame())
    return any(
        (first, start) <= (here.line, start if here.column is None else here.column) < (last, end)
        for first, start, last, end in _constants_in(here.filename)
    )


@functools.lru_cache(maxsize=64)
def _constants_in(filename: str) -> tuple[tuple[int, int, int, int], ...]:
    """Where the calls of ``constant`` stand in a file: line and column, of the start and of the end."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return ()
    return tuple(
        (node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "constant"
    )
