"""Generators and context managers: what hands control to other code, and gets it back."""

from __future__ import annotations

from typing import Any

from dy2st.operators.mode import MODE


class PythonGenerator:
    """A generator that was started outside a capture."""

    __slots__ = ()

    def yields(self, value: Any = None, cleaned_up: bool = False) -> Any:  # noqa: ARG002
        """``yield value`` follows; ``cleaned_up``: inside of a ``with`` or ``try``/``finally``."""
        return value

    def resumed(self, sent: Any) -> Any:
        """The generator goes on, with what its consumer has sent."""
        if MODE.capture is not None:
            MODE.capture.advances.refuse_foreign()
        return sent


PYTHON_GENERATOR = PythonGenerator()


def generator() -> Any:
    """Start a generator."""
    return PYTHON_GENERATOR if MODE.capture is None else MODE.capture.generator()


def manager(context: Any) -> Any:
    """The context manager of a ``with`` statement."""
    return context if MODE.capture is None else MODE.capture.manager(context)
