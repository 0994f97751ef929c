"""Jumps out of staged subgraphs, and the blocks that catch them."""

from __future__ import annotations

from typing import Any, Self

from dy2st.operators.export_session import current


class Jump(BaseException):
    """Leaves a staged subgraph at a ``break``, ``continue`` or ``return``; never seen by the user's handlers."""


class NoBlock:
    """A context manager that does nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


NO_ARM = NoBlock()


class PythonTry:
    """A ``try`` outside a capture."""

    __slots__ = ("_ends",)
    staged = False

    def __init__(self) -> None:
        self._ends = True

    def body(self) -> NoBlock:
        """The suite that the handlers watch."""
        return NO_ARM

    def caught(self) -> None:
        """A handler of this ``try`` runs."""
        self._ends = False

    def orelse(self) -> bool:
        """Whether the else clause runs (now)."""
        return self._ends

    def arm(self) -> NoBlock:
        """Context of a handler or else clause with jumps; nothing to catch in Python."""
        return NO_ARM

    def join(self) -> tuple[Any, ...]:
        """End of the statement; in a staged ``try`` the joined values of its names."""
        return ()

    restore = join


def try_(*handlers: str, names: tuple[str, ...] | None = None) -> Any:
    """Start a ``try`` statement whose suites change ``names``; each handler is said as in the source.

    Without names, Python alone decides whether a handler runs.
    """
    return PythonTry() if (capture := current().capture) is None else capture.try_(handlers, names)


def block(statement: str) -> Any:
    """The suite of a ``finally`` or ``with`` statement that contains jumps."""
    return NO_ARM if (capture := current().capture) is None else capture.block(statement)
