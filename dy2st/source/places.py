"""Places in the user's source: of a running frame, of a traceback."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch

from dy2st.errors import Location

# Frames of these are not the user's; what is installed into site-packages is, though it may lie inside.
OWN = f"{Path(__file__).absolute().parents[1]}{os.sep}"
TORCH = f"{Path(torch.__file__).absolute().parent}{os.sep}"
STDLIB = tuple(f"{sysconfig.get_paths()[kind]}{os.sep}" for kind in ("stdlib", "platstdlib"))


def is_users(filename: str) -> bool:
    """Whether code of this file is the user's or a library's: not ours, not torch's, not Python's own."""
    if filename.startswith(("<", OWN, TORCH)):
        return False
    return not filename.startswith(STDLIB) or "site-packages" in filename


def place(code: CodeType, instruction: int, line: int) -> Location:
    """Where an instruction stands in the source; columns count characters."""
    spans = list(code.co_positions())
    first, last, start, end = spans[instruction // 2] if 0 <= instruction // 2 < len(spans) else (None,) * 4
    return spot(code.co_filename, line, start if first == line else None, end if last == first else None)


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
    """The place that a user's frame is at."""
    return place(frame.f_code, frame.f_lasti, frame.f_lineno)


def user_location(trace: TracebackType | None) -> Location | None:
    """The innermost place of a traceback that is the user's."""
    found = _users(trace)
    return None if found is None else place(found.tb_frame.f_code, found.tb_lasti, found.tb_lineno)


def user_frame(trace: TracebackType | None) -> FrameType | None:
    """The frame of that place."""
    found = _users(trace)
    return None if found is None else found.tb_frame


def users_traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback that are the user's, outermost first."""
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            yield trace
        trace = trace.tb_next


def _users(trace: TracebackType | None) -> TracebackType | None:
    return max(enumerate(users_traces(trace)), key=lambda pair: pair[0], default=(0, None))[1]


def named(owner: Any, otherwise: str) -> str:
    """The name of the variable that holds an object, quoted, or other words for it."""
    name = name_of(owner)
    return otherwise if name is None else repr(name)


def name_of(owner: Any) -> str | None:
    """The variable, attribute of one, or global that holds an object: as the innermost of the user's frames has it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
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
        frame = frame.f_back
    return None
