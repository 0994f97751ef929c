"""Which code is the user's, the frames that run it, and the places that these are at.

The one rule. Code is the user's if its file is

* not one of dy2st's,
* not one of torch's, but for the parts that are like a package of their own (``PARTS_OF_TORCH``),
* not one of Python's standard library; site-packages and dist-packages are none of it, though they may lie inside,
* and a file at all: what ``exec`` runs has a name in angle brackets (``<string>``), and no line to show.

So the code of installed packages is the user's too: it is converted, and an error in it is told at its line.
``is_own`` leaves those out, for what concerns the user's own project alone.

A frame is the user's if its code is. That a library calls back changes nothing: of a function that
``functools.reduce`` or torch calls, the frame is the user's, and the next one outwards is who has called the library.

This imports no torch: where torch lies is found without it.
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib.util
import linecache
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from dy2st.errors import Location


def _folders(*found: str | None) -> tuple[str, ...]:
    """Folders as prefixes of what lies in them; where links lead to, too."""
    named = {os.path.normpath(folder) for folder in found if folder}
    return tuple(sorted(f"{folder}{os.sep}" for folder in named | {os.path.realpath(folder) for folder in named}))


def _torch() -> str | None:
    found = importlib.util.find_spec("torch")
    return None if found is None or found.origin is None else str(Path(found.origin).parent)


_PATHS = sysconfig.get_paths()
OURS = _folders(str(Path(__file__).absolute().parents[1]))
TORCH = _folders(_torch())
PYTHON = _folders(_PATHS["stdlib"], _PATHS["platstdlib"])
PACKAGES = _folders(_PATHS["purelib"], _PATHS["platlib"], site.getusersitepackages(), *site.getsitepackages())
# Parts of torch that are written with torch's own functions, and branch on what these give: they check values by
# ``if``, and raise.
PARTS_OF_TORCH = ("torch.distributions", "torch.nn.utils.clip_grad", "torch.optim", "torch._lobpcg")
_LIKE_PACKAGES = tuple(
    f"{folder}{name.partition('.')[2].replace('.', os.sep)}{end}"
    for folder in TORCH
    for name in PARTS_OF_TORCH
    for end in (os.sep, ".py")
)
_NAMED_PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


# ---- files


def is_ours(filename: str) -> bool:
    """Whether a file is one of dy2st's."""
    return filename.startswith(OURS)


def is_installed(filename: str) -> bool:
    """Whether a file belongs to an installed package."""
    return filename.startswith(PACKAGES) or any(name in filename for name in _NAMED_PACKAGES)


def is_pythons(filename: str) -> bool:
    """Whether a file is one of the standard library."""
    return filename.startswith(PYTHON) and not is_installed(filename)


@functools.lru_cache(maxsize=4096)
def is_users(filename: str) -> bool:
    """Whether code of this file is the user's or a package's."""
    if filename.startswith(TORCH):
        return filename.startswith(_LIKE_PACKAGES)
    return not (filename.startswith(("<", *OURS)) or is_pythons(filename))


def is_part_of_torch(module: str) -> bool:
    """Whether a module of torch's, by its name, is like a package."""
    return any(module == part or module.startswith(f"{part}.") for part in PARTS_OF_TORCH)


def module_of(function: Any) -> str:
    """The module that a function is of, by name; "" if it doesn't say.

    ``functools.wraps`` makes a function say that it is of the module of another one. That is believed of a wrapper in
    Python's or torch's files, which runs what it stands around; a function in a file of the user's is of that file.
    """
    named = getattr(function, "__module__", None)
    named = named if isinstance(named, str) else ""
    plain = getattr(function, "__func__", function)
    if isinstance(plain, FunctionType) and is_users(plain.__code__.co_filename):
        home = plain.__globals__.get("__name__")
        # Packages name a function by the module that they give it out from.
        if isinstance(home, str) and home.partition(".")[0] != named.partition(".")[0]:
            return home
    return named


def is_own(filename: str) -> bool:
    """Whether code of this file is the user's own: no installed package's."""
    return is_users(filename) and not is_installed(filename)


# ---- frames


def frames(start: FrameType | None) -> Iterator[FrameType]:
    """A frame and all that it was called from, innermost first."""
    while start is not None:
        yield start
        start = start.f_back


def is_users_frame(frame: FrameType) -> bool:
    """Whether a frame runs the user's code."""
    return is_users(frame.f_code.co_filename)


def frames_of_user(start: FrameType | None = None) -> Iterator[FrameType]:
    """The frames among these that run the user's code, innermost first; from the caller on without ``start``."""
    return filter(is_users_frame, frames(sys._getframe(1) if start is None else start))


def users_frame() -> FrameType:
    """The innermost frame that runs the user's code.

    Where there is none, as in ``python -c`` and at a prompt: the innermost that runs code from there.
    """
    caller = sys._getframe(1)
    generated = (frame for frame in frames(caller) if frame.f_code.co_filename in ("<string>", "<stdin>"))
    return next(frames_of_user(caller), None) or next(generated, caller)


# ---- places


def place(code: CodeType, instruction: int, line: int) -> Location:
    """Where an instruction stands in the source; columns count characters."""
    spans = _spans(code)
    first, last, start, end = spans[instruction // 2] if 0 <= instruction // 2 < len(spans) else (None,) * 4
    return spot(code.co_filename, line, start if first == line else None, end if last == first else None)


@functools.lru_cache(maxsize=1024)
def _spans(code: CodeType) -> list[tuple[int | None, ...]]:
    """The lines and columns of each instruction; they are unpacked anew each time that they are asked for."""
    return list(code.co_positions())


def spot(filename: str, line: int, start: int | None, end: int | None) -> Location:
    """A place whose columns are those of the compiler, which counts bytes."""
    text = linecache.getline(filename, line).rstrip("\n") or None
    if text is None or start is None:
        return Location(filename, line, None, text)
    raw = text.encode()
    end_column = None if end is None else len(raw[:end].decode(errors="replace"))
    return Location(filename, line, len(raw[:start].decode(errors="replace")), text, end_column)


def node_location(filename: str, node: ast.stmt | ast.expr) -> Location:
    """Where a node of a file's syntax tree stands."""
    return spot(filename, node.lineno, node.col_offset, node.end_col_offset if node.end_lineno == node.lineno else None)


def location_of(frame: FrameType) -> Location:
    """The place that a frame is at; of converted code of dy2st's own, the user's that has called it."""
    if is_ours(frame.f_code.co_filename):
        frame = next(frames_of_user(frame), frame)
    return place(frame.f_code, frame.f_lasti, frame.f_lineno)


def running_location() -> Location | None:
    """The innermost line of the user's that is running."""
    frame = next(frames_of_user(sys._getframe(1)), None)
    return None if frame is None else location_of(frame)


# ---- variables


def snapshot(frame: FrameType) -> dict[Any, Any]:
    """The local variables of a frame, as they are now."""
    return dict(frame.f_locals)


def look_up(variables: dict[Any, Any], name: Any, frame: FrameType | None, otherwise: Any) -> Any:
    """A variable's value in a snapshot, or behind it among the globals of ``frame``, for a name declared global."""
    if name in variables:
        return variables[name]
    if frame is not None and isinstance(name, str) and name not in frame.f_code.co_varnames:
        return frame.f_globals.get(name, otherwise)
    return otherwise


def name_of(owner: Any) -> str | None:
    """The variable, attribute of one, or global that holds an object: as the innermost of the user's frames has it."""
    for frame in frames_of_user():
        for name, value in frame.f_locals.items():
            if value is owner:
                return name
        for name, value in frame.f_locals.items():
            for attribute, held in getattr(value, "__dict__", {}).items():
                if held is owner:
                    return f"{name}.{attribute}"
        for name, value in frame.f_globals.items():
            if value is owner:
                return name
    return None


def named(owner: Any, otherwise: str) -> str:
    """The name of the variable that holds an object, quoted, or other words for it."""
    name = name_of(owner)
    return otherwise if name is None else repr(name)


# ---- tracebacks


def users_traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback that are the user's, outermost first."""
    while trace is not None:
        if is_users_frame(trace.tb_frame):
            yield trace
        trace = trace.tb_next


def innermost(trace: TracebackType | None) -> TracebackType | None:
    """The last entry of a traceback: what has raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def raising_instruction(trace: TracebackType | None) -> str:
    """The instruction of the user's code that raised, or nothing if other code did."""
    trace = innermost(trace)
    if trace is None or not is_users_frame(trace.tb_frame):
        return ""
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]


def user_frame(trace: TracebackType | None) -> FrameType | None:
    """The innermost frame of a traceback that is the user's."""
    found = [*users_traces(trace)]
    return found[-1].tb_frame if found else None


def user_location(trace: TracebackType | None) -> Location | None:
    """The innermost place of a traceback that is the user's."""
    found = [*users_traces(trace)]
    return place(found[-1].tb_frame.f_code, found[-1].tb_lasti, found[-1].tb_lineno) if found else None


def asked_by_others() -> bool:
    """Whether what called the caller of this is code neither of ours nor of torch's; ``abc`` asks for others."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in ("abc", "_py_abc", "typing"):
        frame = frame.f_back
    return frame is not None and not frame.f_code.co_filename.startswith((*OURS, *TORCH))
