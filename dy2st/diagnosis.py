"""What an exception of an export means for the user's model, told at the user's line."""

from __future__ import annotations

import contextlib
import dis
import re
from collections.abc import Iterator
from types import TracebackType

from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from dy2st.errors import (
    CaptureError,
    Dy2stError,
    LeakedValueError,
    OnnxError,
    RaisedError,
    RaiseError,
    RecursionDepthError,
    StagedPathError,
    StagingError,
    UnconvertedConditionError,
    UntranslatedError,
)
from dy2st.graph.places import OWN, is_users, user_location

# torch's ONNX exporter; told apart by name, since the classes are private.
_EXPORTER_ERRORS = {"ConversionError", "DispatchError", "OnnxExporterError", "TorchExportError"}


def translated(error: BaseException, *, staged: bool) -> Dy2stError | None:
    """Our error for one that a capture met, or None to let it pass; ``staged`` says whether a region was open."""
    location = user_location(error.__traceback__)
    if isinstance(error, Dy2stError):
        if error.location is None:
            error.location = location or (error.origin if isinstance(error, StagingError) else None)
        return None
    if isinstance(error, RecursionError):
        return RecursionDepthError(
            "a recursion does not end while the program is captured: its depth depends on a tensor",
            hint="write it as a while loop",
            location=location,
        )
    if isinstance(error, GuardOnDataDependentSymNode):
        return UnconvertedConditionError(
            "a value that only the graph knows is used as a Python condition or size in code that dy2st does not "
            "convert",
            hint="write the condition as an if, while or for statement in a function of your own",
            location=location,
        )
    if staged and isinstance(error, Exception):
        if _raised_by_user(error.__traceback__):
            return RaiseError(
                f"{one_line(error)} is raised under a tensor condition or in a staged loop",
                hint="a graph can't raise here; remove the check, or write it as an if with a raise in converted code",
                location=location,
            )
        return StagedPathError(
            f"this fails on a path that only the graph decides about: {one_line(error)}",
            hint="both arms of a tensor condition are traced, whichever the inputs take: make each work by itself",
            location=location,
        )
    return None


def one_line(error: BaseException) -> str:
    """An exception's type and the first line of its text."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": ")


def _raised_by_user(trace: TracebackType | None) -> bool:
    """Whether a ``raise`` statement of the user's raised."""
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return is_users(code.co_filename) and dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


def captured_failure(error: BaseException) -> Dy2stError | None:
    """Our error for what torch.export says of a program as a whole, or None."""
    name = type(error).__name__
    if isinstance(error, RuntimeError) and "fake tensor in the exported program constant" in str(error):
        return LeakedValueError(
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
    location = user_location(error.__traceback__)
    if location is None or _is_defect(error.__traceback__):
        return None
    what = f"this raises when it is traced, though not when it runs eagerly: {one_line(error)}"
    return RaisedError(what, location=location)


def _is_defect(trace: TracebackType | None) -> bool:
    """Whether code of ours raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(OWN)


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
