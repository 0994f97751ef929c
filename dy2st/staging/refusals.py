"""Exceptions of a capture that no handler of the user's may take for its own."""

from __future__ import annotations

from dy2st.errors import Dy2stError

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
