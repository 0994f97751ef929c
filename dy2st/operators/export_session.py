"""What is known while a model is exported: one object for each run of ``torch.export``, and nothing afterwards.

``begun()`` starts a session, ``current()`` gives the running one. Code at any level keeps its state in a *part*: a
class of its own that takes no arguments, of which the session has one instance (``current().part(Notes)``). The session
knows no class of parts, so that a lower layer's state needs no upper one. Whoever starts a session may hand it parts.

* A session inside of another one has its own parts; at its end the outer one goes on.
* Another thread sees none, even if it runs in a copy of the exporting thread's context: nothing that it does is traced.
* Where no export runs, no capture runs, and each part is a new one: nothing is known, and nothing is kept.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeVar, cast

from dy2st.operators.answers import Answers

T = TypeVar("T")


class NoExport:
    """What ``current()`` gives where no export runs."""

    __slots__ = ()
    # A class attribute: every operator of eager code asks for it.
    capture: Answers | None = None

    def is_here(self) -> bool:
        """Whether an export runs in the thread that asks."""
        return False

    def part(self, kind: type[T]) -> T:
        """A part of which nothing is known, and which nobody else will see."""
        return kind()


class ExportSession:
    """One run of ``torch.export``; ``given`` are parts that whoever starts it has made."""

    __slots__ = ("__weakref__", "_capture", "_parts", "_thread")

    def __init__(self, *given: object) -> None:
        self._capture: Answers | None = None
        self._parts: dict[type, object] = {type(part): part for part in given}
        self._thread: int | None = threading.get_ident()

    def is_here(self) -> bool:
        """Whether it goes on, in the thread that asks."""
        return threading.get_ident() == self._thread

    @property
    def capture(self) -> Answers | None:
        """The capture that answers what rewritten code asks for, once torch traces."""
        return self._capture if self.is_here() else None

    def part(self, kind: type[T]) -> T:
        """The session's instance of a class, made where it is first asked for."""
        if not self.is_here():
            return kind()
        found = self._parts.get(kind)
        if found is None:
            found = self._parts[kind] = kind()
        return cast("T", found)

    @contextlib.contextmanager
    def answered_by(self, capture: Answers) -> Iterator[None]:
        """While ``capture`` answers what rewritten code asks."""
        before, self._capture = self._capture, capture
        try:
            yield
        finally:
            self._capture = before

    def end(self) -> None:
        """Forget everything: what still refers to the session, such as a traceback, keeps nothing alive by it."""
        self._capture = self._thread = None
        self._parts = {}


_RUNNING: ContextVar[NoExport | ExportSession] = ContextVar("dy2st_export", default=NoExport())  # noqa: B039  it holds nothing

# Asked for by every operator of rewritten code, also where no export runs: a call of C code.
current = _RUNNING.get


@contextlib.contextmanager
def begun(*given: object) -> Iterator[ExportSession]:
    """A session of its own, for as long as the context lasts."""
    session = ExportSession(*given)
    token = _RUNNING.set(session)
    try:
        yield session
    finally:
        _RUNNING.reset(token)
        session.end()
