"""Calls, functions with early returns, generators and context managers: whatever hands control to other code."""

from __future__ import annotations

from typing import Any, Self

from dy2st.operators.export_session import current

# What is called outside of a capture in place of functions that can't run converted code, by their identity.
EAGER_FORMS: dict[int, Any] = {}


def call(function: Any) -> Any:
    """What to call in place of ``function``: converted code under a capture, native otherwise."""
    if (capture := current().capture) is None:
        return EAGER_FORMS.get(id(function), function)
    return capture.call(function)


def muted(*_: Any) -> Any:
    """The value of a statement that a search for refusals leaves out; outside of such a search there is none."""
    capture = current().capture
    assert capture is not None
    return capture.muted()


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
    return PYTHON_FUNCTION if (capture := current().capture) is None else capture.function()


class PythonGenerator:
    """A generator that was started outside a capture."""

    __slots__ = ()

    def yields(self, value: Any = None, cleaned_up: bool = False) -> Any:  # noqa: ARG002
        """``yield value`` follows; ``cleaned_up``: inside of a ``with`` or ``try``/``finally``."""
        return value

    delegates = yields

    def resumed(self, sent: Any) -> Any:
        """The generator goes on, with what its consumer has sent."""
        if (capture := current().capture) is not None:
            capture.resumed_from_outside()
        return sent


PYTHON_GENERATOR = PythonGenerator()


def generator() -> Any:
    """Start a generator."""
    return PYTHON_GENERATOR if (capture := current().capture) is None else capture.generator()


def manager(context: Any) -> Any:
    """The context manager of a ``with`` statement."""
    return context if (capture := current().capture) is None else capture.manager(context)
