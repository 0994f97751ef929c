"""What an exception of an export means for the user's model, told at the user's line."""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from dy2st.errors import (
    CaptureError,
    Dy2stError,
    Location,
    OnnxError,
    RaisedError,
    StagingError,
    UntranslatedError,
)

# torch's ONNX exporter; told apart by name, since the classes are private.
_EXPORTER_ERRORS = {"ConversionError", "DispatchError", "OnnxExporterError", "TorchExportError"}
OWN = str(Path(__file__).absolute().parent)
TORCH = str(Path(torch.__file__).absolute().parent)


def user_location(trace: TracebackType | None) -> Location | None:
    """The innermost line of a traceback that is neither ours nor torch's."""
    for frame in reversed(traceback.extract_tb(trace)):
        filename = frame.filename
        if filename.startswith((OWN, TORCH, "<")) or (f"{os.sep}transforms{os.sep}" in filename and not frame.line):
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
            "a value that only the graph knows is used as a Python condition or size in code that dy2st does not "
            "convert",
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
    if isinstance(error, RuntimeError) and "fake tensor in the exported program constant" in str(error):
        return StagingError(
            "a tensor made under a tensor condition or in a staged loop is used after it, unseen by dy2st",
            hint="assign it to a variable on every path (a walrus inside and/or, or a cache, hides it)",
        )
    if name == "UserError" and "Constraints violated" in str(error):
        lines = [line.strip() for line in str(error).splitlines() if line.strip().startswith("- ")]
        return CaptureError(
            "a size that is declared dynamic was fixed by the capture: " + " ".join(lines or [str(error)]),
            hint="give that dimension a static size, or don't branch on it in code that dy2st does not convert",
            location=user_location(error.__traceback__),
        )
    return None


@contextlib.contextmanager
def diagnosing() -> Iterator[None]:
    """Raise an exception of an export as the error that explains it; a defect of dy2st passes as it is.

    Raises:
        OnnxError: torch's ONNX exporter failed.
        UntranslatedError: it has no translation of an operator.
        RaisedError: a line of the user's raised while it was traced.
    """
    try:
        yield
    except Dy2stError:
        raise
    except Exception as error:
        explained = captured_failure(error) or _explained(error)
        if explained is None:
            raise
        raise explained from error


def _explained(error: Exception) -> Dy2stError | None:
    if _EXPORTER_ERRORS & {kind.__name__ for kind in type(error).__mro__}:
        return _exporter_error(error)
    frames = traceback.extract_tb(error.__traceback__)
    location = user_location(error.__traceback__)
    if location is None or not frames or frames[-1].filename.startswith(OWN):
        return None
    text = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": ")
    return RaisedError(f"this raises when it is traced, though not when it runs eagerly: {text}", location=location)


def _exporter_error(error: Exception) -> OnnxError:
    missing = re.search(r"No ONNX function found for <OpOverload\(op='([^']+)'", str(error))
    if missing:
        hint = "compute it with simpler operators, or try a newer opset"
        return UntranslatedError(f"there is no ONNX translation of {missing[1]}", hint=hint)
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    first = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    return OnnxError(f"torch's ONNX exporter fails: {type(cause).__name__}: {first}")
