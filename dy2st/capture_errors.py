"""Errors of a capture, told at the user's line."""

from __future__ import annotations

import linecache
import os
import traceback
from types import TracebackType

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from dy2st.errors import CaptureError, Dy2stError, Location, StagingError

OWN = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.dirname(os.path.abspath(torch.__file__))


def user_location(trace: TracebackType | None) -> Location | None:
    """The innermost line of a traceback that is neither ours nor torch's."""
    for frame in reversed(traceback.extract_tb(trace)):
        filename = frame.filename
        if filename.startswith((OWN, TORCH, "<")) or f"{os.sep}transforms{os.sep}" in filename and not frame.line:
            continue
        text = linecache.getline(filename, frame.lineno or 0).rstrip("\n") or None
        return Location(filename, frame.lineno or 0, frame.colno, text)
    return None


def translated(error: BaseException, *, staged: bool) -> Dy2stError | None:
    """Our error for one that a capture met, or None to let it pass; ``staged`` says whether a region was open."""
    location = user_location(error.__traceback__)
    if isinstance(error, Dy2stError):
        if error.location is None:
            error.location = location
        return None
    if isinstance(error, RecursionError):
        return StagingError(
            "a recursion does not end while the program is captured: its depth depends on a tensor",
            hint="write it as a while loop",
            location=location,
        )
    if isinstance(error, GuardOnDataDependentSymNode):
        return StagingError(
            "a value that only the graph knows is used as a Python condition or size in code that dy2st does not convert",
            hint="write the condition as an if, while or for statement in a function of your own",
            location=location,
        )
    if staged and isinstance(error, Exception):
        return StagingError(
            f"{type(error).__name__} is raised under a tensor condition: {error}",
            hint="a graph can't raise; remove the check, or use assert",
            location=location,
        )
    return None


def captured_failure(error: BaseException) -> Dy2stError | None:
    """Our error for what torch.export says of a program as a whole, or None."""
    name = type(error).__name__
    if name == "UserError" and "Constraints violated" in str(error):
        lines = [line.strip() for line in str(error).splitlines() if line.strip().startswith("- ")]
        return CaptureError(
            "a size that is declared dynamic was fixed by the capture: " + " ".join(lines or [str(error)]),
            hint="give that dimension a static size, or don't branch on it in code that dy2st does not convert",
            location=user_location(error.__traceback__),
        )
    return None
