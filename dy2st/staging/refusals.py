"""Exceptions of a capture that no handler of the user's may take for its own."""

from __future__ import annotations

from types import FrameType

from dy2st.errors import CaughtError, Dy2stError
from dy2st.source.user_frames import location_of

# What torch raises where traced code asks for a value; eager code has it, and goes on.
TORCH_REFUSALS = frozenset(
    {
        "DataDependentOutputException",
        "DynamicOutputShapeException",
        "GuardOnDataDependentSymNode",
        "UnsupportedFakeTensorException",
        "UnsupportedOperatorException",
    }
)


def is_refusal(error: BaseException | None) -> bool:
    """Whether an exception is there only because the code is being captured."""
    return isinstance(error, Dy2stError) or type(error).__name__ in TORCH_REFUSALS


def caught_outside(frame: FrameType) -> CaughtError:
    """What to say of an exception of an arm or a staged loop, caught around it in ``frame``."""
    return CaughtError(
        "an exception raised under a tensor condition is caught outside of that condition",
        hint="test for the case with an if on the tensor in place of the exception",
        location=location_of(frame),
    )
