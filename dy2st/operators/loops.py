"""``while``, ``for`` and the iterables of comprehensions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dy2st.operators.export_session import current
from dy2st.operators.jumps import NO_ARM, NoBlock


class PythonLoop:
    """A loop outside a capture: the native statement does all the work."""

    __slots__ = ()
    staged = False
    completed = True

    def test(self, value: Any) -> Any:
        """The test of a ``while``; the statement itself takes its truth."""
        return value

    def over(self, iterable: Any) -> Any:
        """The iterable of a ``for``; the statement itself iterates."""
        return iterable

    def body(self) -> NoBlock:
        """Context of a body with jumps."""
        return NO_ARM

    def breaks(self) -> None:
        """A ``break`` follows."""

    def continues(self) -> None:
        """A ``continue`` follows."""

    def state(self) -> tuple[Any, ...]:
        """The values of the loop's names at the head of a staged iteration."""
        return ()

    settle = result = state


PYTHON_LOOP = PythonLoop()


def loop(*names: str, targets: tuple[str, ...] = (), yields: bool = False) -> Any:
    """Start a loop whose body changes ``names``; ``targets`` are bound by its ``for`` clause.

    ``yields`` says whether the body hands control to the consumer of a generator.
    """
    return PYTHON_LOOP if (capture := current().capture) is None else capture.loop(names, targets, yields)


def each(iterable: Iterable[Any]) -> Any:
    """The iterable of a comprehension's first ``for``."""
    return iterable if (capture := current().capture) is None else capture.each(iterable, inner=False)


def each_inner(iterable: Iterable[Any]) -> Any:
    """The iterable of another one."""
    return iterable if (capture := current().capture) is None else capture.each(iterable, inner=True)


def element(value: Any) -> Any:
    """What one run of a list comprehension, or of a generator expression, has made."""
    return value if (capture := current().capture) is None else capture.element(value)
