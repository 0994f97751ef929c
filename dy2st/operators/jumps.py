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

    __slots__ = ()

    def body(self) -> NoBlock:
        """The suite that the handlers watch."""
        return NO_ARM

    def caught(self) -> None:
        """A handler of this ``try`` runs."""


PYTHON_TRY = PythonTry()


def try_(*kinds: str) -> Any:
    """Start a ``try`` statement with handlers for ``kinds``; the result is told when a handler runs."""
    return PYTHON_TRY if (capture := current().capture) is None else capture.try_(kinds)


def block(statement: str) -> Any:
    """The suite of a ``finally`` or ``with`` statement that contains jumps."""
    return NO_ARM if (capture := current().capture) is None else capture.block(statement)
