"""Places in the user's source: of a running frame, of a traceback."""

from __future__ import annotations

import linecache
import os
import sysconfig
from pathlib import Path
from types import CodeType, FrameType, TracebackType

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
    text = linecache.getline(code.co_filename, line).rstrip("\n") or None
    spans = list(code.co_positions())
    first, last, start, end = spans[instruction // 2] if 0 <= instruction // 2 < len(spans) else (None,) * 4
    if text is None or first != line or start is None:
        return Location(code.co_filename, line, None, text)
    # The compiler counts bytes.
    raw = text.encode()
    column = len(raw[:start].decode(errors="replace"))
    end_column = len(raw[:end].decode(errors="replace")) if end is not None and last == first else None
    return Location(code.co_filename, line, column, text, end_column)


def location_of(frame: FrameType) -> Location:
    """The place that a user's frame is at."""
    return place(frame.f_code, frame.f_lasti, frame.f_lineno)


def user_location(trace: TracebackType | None) -> Location | None:
    """The innermost place of a traceback that is the user's."""
    found: TracebackType | None = None
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found = trace
        trace = trace.tb_next
    return None if found is None else place(found.tb_frame.f_code, found.tb_lasti, found.tb_lineno)
