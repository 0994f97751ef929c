"""The errors that dy2st raises: one hierarchy, a stable code for each kind, one line that says what and where.

Codes: ``D2S1xx`` syntax and source, ``D2S2xx`` staging, ``D2S3xx`` capture, ``D2S4xx`` ONNX, ``D2S5xx`` parity,
``D2S9xx`` usage.

A class's docstring is its help page: ``dy2st explain CODE`` prints it. It says what the error means, why it is one, and
shows what raises it (*Before*) and what to write instead (*After*); a test runs both.
"""

from __future__ import annotations

from dy2st.errors.base import Dy2stError, Location
from dy2st.errors.exporting import (
    CaptureError,
    OnnxError,
    ParityError,
    RaisedError,
    SaveError,
    UntranslatedError,
    UnusableInputError,
)
from dy2st.errors.pages import explain, kinds, summaries
from dy2st.errors.source import NoSourceError, SourceError, StaleSourceError, UnsupportedSourceError
from dy2st.errors.staging import StagingError
from dy2st.errors.usage import (
    ExampleInputsError,
    InputFileError,
    InputSpecError,
    SettingsError,
    TargetError,
    UsageError,
)

__all__ = [
    "CaptureError",
    "Dy2stError",
    "ExampleInputsError",
    "InputFileError",
    "InputSpecError",
    "Location",
    "NoSourceError",
    "OnnxError",
    "ParityError",
    "RaisedError",
    "SaveError",
    "SettingsError",
    "SourceError",
    "StagingError",
    "StaleSourceError",
    "TargetError",
    "UnsupportedSourceError",
    "UntranslatedError",
    "UnusableInputError",
    "UsageError",
    "explain",
    "kinds",
    "summaries",
]
