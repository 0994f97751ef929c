"""The frame of a converted function with early returns."""

from __future__ import annotations

from typing import Any, Self

from dy2st.operators.mode import MODE


class PythonFunction:
    """A function that runs outside a capture: returns are native."""

    __slots__ = ()
    value = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def returns(self, value: Any) -> Any:
        """The value of a ``return`` statement."""
        return value

    def raises(self) -> None:
        """A ``raise`` follows."""


PYTHON_FUNCTION = PythonFunction()


def function() -> Any:
    """Start a function whose returns may have to be staged."""
    return PYTHON_FUNCTION if MODE.capture is None else MODE.capture.function()
