"""Exceptions of a capture that no handler of the user's may take for its own."""

from __future__ import annotations

from types import FrameType

from dy2st.errors import CaughtError, Dy2stError, Location
from dy2st.source.user_frames import location_of, raising_instruction, user_location

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


def raised_at(error: Exception) -> Location | None:
    """Where a ``raise`` or ``assert`` of the user's has raised an exception; None for what raises otherwise.

    What torch or Python raises while code is traced, eager may not raise.
    """
    by_the_user = raising_instruction(error.__traceback__) == "RAISE_VARARGS" and not is_refusal(error)
    return user_location(error.__traceback__) if by_the_user else None


def caught_outside(frame: FrameType) -> CaughtError:
    """What to say of an exception of an arm or a staged loop, caught around it in ``frame``."""
    return CaughtError(
        "an exception raised under a tensor condition is caught outside of that condition",
        hint="test for the case with an if on the tensor in place of the exception",
        location=location_of(frame),
    )
