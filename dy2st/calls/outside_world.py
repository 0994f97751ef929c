"""Clocks, files, other processes, what is printed: the world outside of the program, asked or told while it is traced.

A program of ``to_static`` runs again where all that its code read is what it was. Such a read can't be compared with
the last one, and what is printed would be printed once. So both are refused, except inside of ``dy2st.constant``, and
where the user has said that all is constant. An exported program is a snapshot by intent, and takes them as they are.

The rule: a function of Python's library may be called if its module is one that asks nothing, if it can be asked
again (:mod:`dy2st.calls.asked_again`), or by its name here. All others ask or tell the world something.
"""

from __future__ import annotations

import builtins
import datetime as dt
import inspect
import io
import logging
import os
import pathlib
import sys
import time
import types
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor

from dy2st.calls.asked_again import Answer, is_asking
from dy2st.errors import UnguardedError
from dy2st.operators.export_session import current
from dy2st.source.call_places import in_constant
from dy2st.source.user_frames import location_of, module_of, users_frame
from dy2st.staging.session import MODE, Session
from dy2st.tracing.known_values import known_value
from dy2st.tracing.subgraph import storage_key
from dy2st.tracing.tracer import outside_the_trace
from dy2st.values.journal import Store

# Modules of Python's library that compute with what they are given, and those whose functions have rules of their own.
_ASK_NOTHING = frozenset(
    "abc argparse array ast asyncio base64 binascii bisect builtins calendar cmath codecs collections colorsys "
    "concurrent contextlib contextvars copy copyreg csv ctypes dataclasses datetime decimal difflib dis enum errno "
    "fnmatch fractions functools genericpath graphlib hashlib heapq hmac html importlib inspect io itertools json "
    "keyword logging math numbers opcode operator ntpath os pathlib pickle posix posixpath pprint quopri random re "
    "reprlib shlex sre_compile statistics stat string struct textwrap token tokenize types typing unicodedata "
    "urllib.parse uuid weakref weakrefset warnings xml zlib zoneinfo".split()
)
_OUTSIDE = frozenset(("urllib.request", "http.client", "importlib.metadata", "importlib.resources"))
# Functions of other modules that ask nothing, and those of threads that change nothing for long.
_HARMLESS = frozenset((time.sleep, time.mktime, time.strptime, sys.getsizeof, sys.intern, sys.exc_info, sys.audit))
_HARMLESS_NAMES = frozenset("acquire release Lock RLock Condition Event Semaphore local".split())
_NAMED = frozenset(
    (
        *(builtins.open, io.open, builtins.input, uuid.uuid1, uuid.uuid4, os.urandom, os.getpid, os.getcwd, os.listdir),
        *(os.scandir, os.stat, os.path.exists, os.path.isfile, os.path.isdir, os.path.getsize, os.path.getmtime),
        *(torch.get_rng_state, torch.set_rng_state, torch.random.get_rng_state, torch.random.set_rng_state),
        *(np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.memmap, torch.load, torch.from_file),
        *(os.walk, os.popen, os.system, os.remove, os.makedirs, os.mkdir, os.rename, os.cpu_count),
        # The stack is another one when the program runs, and so are the filters of warnings while it is captured.
        *(inspect.currentframe, inspect.stack, inspect.trace, inspect.getouterframes, inspect.getinnerframes),
        *(warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings, logging.basicConfig),
    )
)
_CLOCKS = frozenset("now today utcnow".split())
_OF_PATHS = frozenset(
    "exists is_file is_dir stat open read_text read_bytes write_text write_bytes iterdir glob rglob mkdir unlink touch "
    "cwd home resolve".split()
)
LEVELS = {name: getattr(logging, name.upper(), logging.ERROR) for name in "debug info warning error critical".split()}
LEVELS |= {"exception": logging.ERROR, "log": logging.CRITICAL, "warn": logging.WARNING, "fatal": logging.CRITICAL}

_OF_MEMORY = frozenset("storage_offset is_conj is_neg _is_view".split())


class Constants:
    """What the user has declared to be read once; a part of the session of an export.

    ``differentiated`` says whether the program is to have gradients: if it runs in the code's place, unless told.
    With ``speaks`` the program prints and logs what the code does. ``answers`` and ``stored`` are found by the capture.
    """

    def __init__(self, *, everything: bool = True, differentiated: bool | None = None, speaks: bool = False) -> None:
        self.everything = everything
        self.speaks = speaks
        self.differentiated = not everything if differentiated is None else differentiated
        # What the process has said of itself, which can be asked again.
        self.answers: list[Answer] = []
        # What each clock said last.
        self.readings: dict[Callable[[], Any], Any] = {}
        # The objects that ``id`` was asked of.
        self.identified: list[Any] = []
        # What the code stores that outlives the call, and no program stores.
        self.stored: list[Store] = []


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
    """
    tensor = method.__self__
    if not isinstance(tensor, torch.Tensor) or method.__name__ not in _OF_MEMORY:
        return
    inputs, of_export = capture.shared_inputs, current().part(Constants).everything
    if method.__name__ == "_is_view" and not of_export:
        raise UnguardedError(
            "_is_view() asks whether a tensor lies in another one, which a program does not know",
            hint="ask outside, and pass in what follows from it",
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
    if what is None or in_constant(location_of(users_frame())) or (_is_filter(function) and filters_are_local()):
        return
    raise UnguardedError(
        f"{what} while the function is traced: each run of the program would have the same",
        hint="pass it in as an argument, or say that it is read once: dy2st.constant(...), to_static(..., freeze=True)",
        location=location_of(users_frame()),
    )


def noting_identity(capture: Session, found: Callable[..., Any]) -> Callable[..., Any]:
    """``found`` is called in place of ``id``; what it is asked of is noted: the program holds for that object alone.

    Of tensors a program knows no identity.
    """
    constants = current().part(Constants)

    def ask(value: Any) -> Any:
        outside = isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
        if outside or capture.shared_inputs.is_one(value):
            raise UnguardedError(
                "id() asks which tensor an input, a parameter or one from outside is, which a program does not know",
                hint="take the name of a parameter in place of its identity, or pass in what follows from it",
                location=location_of(users_frame()),
            )
        constants.identified.append(value)
        return found(value)

    return ask


def filters_are_local() -> bool:
    """Whether the filters of warnings are those of a block, which ends before the call does."""
    managers = () if MODE.capture is None else MODE.capture.managers
    return any(isinstance(each, warnings.catch_warnings) for each in managers)


def _is_filter(function: Any) -> bool:
    return any(function is each for each in (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings))


def _asked(function: Any) -> str | None:
    """What a function does to the outside, in words; None if it does nothing."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    if function is builtins.print:
        return "print() writes to a stream"
    if function is vars(logging).get(name):  # a function of the module is one of the first logger
        owner = logging.getLogger()
    if isinstance(owner, logging.Logger) and name in LEVELS:
        return f"{name}() writes to a log" if owner.isEnabledFor(LEVELS[name]) else None
    if isinstance(owner, torch.Generator):
        return f"{name}() reads or changes a generator of random numbers"
    if isinstance(owner, type) and issubclass(owner, dt.date) and name in _CLOCKS:
        return f"{owner.__name__}.{name}() reads a clock"
    if isinstance(owner, io.IOBase) and not isinstance(owner, (io.StringIO, io.BytesIO)):
        return f"{name}() reads or writes a file"
    of_paths = isinstance(owner, pathlib.Path) or (isinstance(owner, type) and issubclass(owner, pathlib.Path))
    if of_paths and name in _OF_PATHS:
        return f"{name}() looks at files"
    if not isinstance(function, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)):
        return None
    if isinstance(function, types.FunctionType | types.BuiltinFunctionType | type) and function in _NAMED:
        return f"{name}() asks the system"
    return f"{name}() asks the system" if _is_of_python(function) and not _asks_nothing(function) else None


def _is_of_python(function: Any) -> bool:
    return _home(function).partition(".")[0] in sys.stdlib_module_names


def _asks_nothing(function: Any) -> bool:
    home, name = _home(function).removeprefix("_"), function.__name__
    if home in _OUTSIDE:
        return False
    known = home in _ASK_NOTHING or home.partition(".")[0] in _ASK_NOTHING
    by_name = name in _HARMLESS_NAMES or name.startswith("__") or is_asking(function)
    return known or by_name or any(function is each for each in _HARMLESS)


def _home(function: Any) -> str:
    """The module that a function is of; of a method written in C, that of its object's class."""
    owner = getattr(function, "__self__", None)
    if (
        isinstance(function, types.BuiltinFunctionType)
        and owner is not None
        and not isinstance(owner, types.ModuleType)
    ):
        owner = owner if isinstance(owner, type) else type(owner)
        return owner.__module__ or ""
    return module_of(function)
