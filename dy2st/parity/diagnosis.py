"""What an exception of an export means for the user's model, where the capture itself has not said it yet."""

from __future__ import annotations

import contextlib
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.capture_errors import user_location
from dy2st.errors import Dy2stError, OnnxError, RaisedError, UntranslatedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = str(Path(__file__).resolve().parents[1])

# torch's ONNX exporter; told apart by name, since the classes are private.
_EXPORTER_ERRORS = {"ConversionError", "DispatchError", "OnnxExporterError", "TorchExportError"}


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
        explained = _explained(error)
        if explained is None:
            raise
        raise explained from error


def _explained(error: Exception) -> Dy2stError | None:
    if _EXPORTER_ERRORS & {kind.__name__ for kind in type(error).__mro__}:
        return _exporter_error(error)
    frames = traceback.extract_tb(error.__traceback__)
    location = user_location(error.__traceback__)
    if location is None or not frames or frames[-1].filename.startswith(_OURS):
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
