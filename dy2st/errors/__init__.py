"""The errors that dy2st raises: one hierarchy, a stable code for each kind, one line that says what and where.

Codes: ``D2S1xx`` syntax and source, ``D2S2xx`` staging, ``D2S3xx`` capture, ``D2S4xx`` ONNX, ``D2S5xx`` parity,
``D2S9xx`` usage.

A class's docstring is its help page: ``dy2st explain CODE`` prints it. It says what the error means, why it is one, and
shows what raises it (*Before*) and what to write instead (*After*); a test runs both.
"""

from __future__ import annotations

from dy2st.errors.backends import BackendError
from dy2st.errors.base import Dy2stError, Location
from dy2st.errors.borders import UnconvertedCallError
from dy2st.errors.carried import CarriedStateError
from dy2st.errors.cautions import (
    DtypeWarning,
    Dy2stWarning,
    OptionWarning,
    RetracingWarning,
    StateWarning,
    UnrolledLoopWarning,
)
from dy2st.errors.containers import (
    GrownListError,
    KeysChangeError,
    ListChangeError,
    StagedIndexError,
    UnsettledStateError,
)
from dy2st.errors.control import (
    CaughtError,
    ComprehensionError,
    GeneratorError,
    JumpError,
    LoopHintError,
    RaiseError,
    RecursionDepthError,
    StagedPathError,
)
from dy2st.errors.exporting import (
    CaptureError,
    CommunicationError,
    NoGradientError,
    OnnxError,
    OutputError,
    RaisedError,
    RandomInputError,
    SaveError,
    SparseTensorError,
    SpecializedError,
    UntranslatedError,
)
from dy2st.errors.modes import ModeSwitchError, SeedError, TrainingNormError
from dy2st.errors.objects import (
    AliasError,
    BufferKindError,
    DataError,
    HeapSizeError,
    IdentityError,
    LeakedValueError,
    LostStateError,
    SharedContainerError,
    UnguardedError,
)
from dy2st.errors.pages import explain, kinds, summaries
from dy2st.errors.parity import (
    DriftError,
    LostProcessError,
    MissingTargetError,
    ParityError,
    TimeLimitError,
    UnusableInputError,
)
from dy2st.errors.saved_files import EmbeddedTestsError, SavedCallError, SavedFileError, UnsavableError
from dy2st.errors.source import NoSourceError, SourceError, StaleSourceError, UnsupportedSourceError
from dy2st.errors.staging import (
    DifferentDtypesError,
    DifferentObjectsError,
    DifferentRanksError,
    DifferentStructureError,
    DifferentTypesError,
    NoValueError,
    StagingError,
)
from dy2st.errors.unknowns import (
    ConditionShapeError,
    DynamicLengthError,
    NumpyError,
    StagedNumberError,
    UnconvertedConditionError,
)
from dy2st.errors.usage import (
    BaselineError,
    ClusterError,
    ExampleInputsError,
    InputFileError,
    InputSpecError,
    SettingsError,
    TargetError,
    UsageError,
)

__all__ = [
    "AliasError",
    "BackendError",
    "BaselineError",
    "BufferKindError",
    "CaptureError",
    "CarriedStateError",
    "CaughtError",
    "ClusterError",
    "CommunicationError",
    "ComprehensionError",
    "ConditionShapeError",
    "DataError",
    "DifferentDtypesError",
    "DifferentObjectsError",
    "DifferentRanksError",
    "DifferentStructureError",
    "DifferentTypesError",
    "DriftError",
    "DtypeWarning",
    "Dy2stError",
    "Dy2stWarning",
    "DynamicLengthError",
    "EmbeddedTestsError",
    "ExampleInputsError",
    "GeneratorError",
    "GrownListError",
    "HeapSizeError",
    "IdentityError",
    "InputFileError",
    "InputSpecError",
    "JumpError",
    "KeysChangeError",
    "LeakedValueError",
    "ListChangeError",
    "Location",
    "LoopHintError",
    "LostProcessError",
    "LostStateError",
    "MissingTargetError",
    "ModeSwitchError",
    "NoGradientError",
    "NoSourceError",
    "NoValueError",
    "NumpyError",
    "OnnxError",
    "OptionWarning",
    "OutputError",
    "ParityError",
    "RaiseError",
    "RaisedError",
    "RandomInputError",
    "RecursionDepthError",
    "RetracingWarning",
    "SaveError",
    "SavedCallError",
    "SavedFileError",
    "SeedError",
    "SettingsError",
    "SharedContainerError",
    "SourceError",
    "SparseTensorError",
    "SpecializedError",
    "StagedIndexError",
    "StagedNumberError",
    "StagedPathError",
    "StagingError",
    "StaleSourceError",
    "StateWarning",
    "TargetError",
    "TimeLimitError",
    "TrainingNormError",
    "UnconvertedCallError",
    "UnconvertedConditionError",
    "UnguardedError",
    "UnrolledLoopWarning",
    "UnsavableError",
    "UnsettledStateError",
    "UnsupportedSourceError",
    "UntranslatedError",
    "UnusableInputError",
    "UsageError",
    "explain",
    "kinds",
    "summaries",
]
