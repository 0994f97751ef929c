"""What went wrong in torch, said in terms of the user's model: exceptions of torch.export and torch.onnx as our errors.

Exceptions are told apart by the name of their class, so that importing this module imports no torch.
"""

from __future__ import annotations

import contextlib
import linecache
import re
import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.errors import (
    CaptureError,
    Dy2stError,
    Location,
    OnnxError,
    RaisedError,
    SpecializedSizeError,
    UntranslatedError,
    ValueNeededError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = str(Path(__file__).resolve().parent)
_LIBRARIES = ("torch", "onnx", "onnxruntime", "onnxscript", "onnx_ir", "numpy", "sympy")


def users_location(error: BaseException) -> Location | None:
    """The innermost line of the user's code in an exception's traceback: neither ours nor torch's nor Python's own."""
    stdlib = sysconfig.get_paths()["stdlib"]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        parts = Path(frame.filename).parts
        packaged = "site-packages" in parts
        library = packaged and parts[parts.index("site-packages") + 1] in _LIBRARIES
        python = frame.filename.startswith(stdlib) and not packaged
        if library or python or frame.filename.startswith((_OURS, "<")):
            continue
        line = frame.lineno or 1
        return Location(frame.filename, line, frame.colno, linecache.getline(frame.filename, line).rstrip("\n") or None)
    return None


def diagnosed(error: Exception) -> Dy2stError | None:
    """The error that says what an exception of a capture or of an ONNX export means, or None for a defect of dy2st.

    An exception counts as the user's if a line of theirs is on the stack and it was not raised by dy2st's own code.
    """
    if isinstance(error, Dy2stError):
        return error
    location = users_location(error)
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"ConversionError", "DispatchError", "OnnxExporterError", "TorchExportError"}:
        return _onnx(error)
    if "Constraints violated" in str(error):
        return _specialized(str(error), location)
    if "GuardOnDataDependentSymNode" in names:
        return ValueNeededError(
            "Python needs a value that only the graph knows", hint="compute with tensors here", location=location
        )
    if isinstance(error, RecursionError):
        return RaisedError(
            "the recursion does not end: its depth depends on a tensor",
            hint="a while loop, with what the recursion passes on as variables",
            location=location,
        )
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    if location is None or innermost.startswith(_OURS):
        return None
    first = next(iter(str(error).splitlines()), "")
    what = f"the model raises {type(error).__name__} while it is traced, though not when it runs eagerly"
    return RaisedError(f"{what}: {first}" if first else what, location=location)


@contextlib.contextmanager
def diagnosing() -> Iterator[None]:
    """Raise an exception of torch's as the error that explains it; a defect of dy2st passes as it is."""
    try:
        yield
    except Dy2stError:
        raise
    except Exception as error:
        explained = diagnosed(error)
        if explained is None:
            raise
        raise explained from error


def _specialized(text: str, location: Location | None) -> CaptureError:
    """torch's list of violated constraints, its first entry shortened to one sentence."""
    names = re.search(r"Constraints violated \(([^)]*)\)", text)
    sizes = names[1] if names else "some"
    reasons = [line.strip(" -") for line in text.splitlines() if line.strip().startswith("- ")]
    fixes = text.partition("Suggested fixes:")[2].partition("\n\n")[0].split("\n")
    suggested = "; ".join(fix.strip() for fix in fixes if fix.strip())
    constant = re.search(r"specialized it to be a constant \((\d+)\)", text)
    if constant:
        what = f"the size {sizes} was declared dynamic, but the model makes it {constant[1]}"
    else:
        what = f"the sizes {sizes} can't be as dynamic as declared" + (f": {reasons[0]}" if reasons else "")
    hint = f"in dynamic_shapes: {suggested}" if suggested else ""
    return SpecializedSizeError(what, hint=hint, location=location)


def _onnx(error: Exception) -> OnnxError:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    missing = re.search(r"No ONNX function found for <OpOverload\(op='([^']+)'", str(error))
    if missing:
        return UntranslatedError(f"there is no ONNX translation of {missing[1]}", hint="simpler operators")
    first = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    return OnnxError(f"torch's ONNX exporter fails: {type(cause).__name__}: {first}")
