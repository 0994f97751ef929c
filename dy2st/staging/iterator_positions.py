"""Iterators under a capture: each is advanced along one path only.

An iterator keeps its place inside Python, where no journal sees it: what one arm has taken from it, or one tracing of
a loop's body, can't be put back for the other. So an iterator may be advanced inside an arm or body, and may not be
advanced again once that has ended.
"""

from __future__ import annotations

import gc
import inspect
import operator
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from dy2st.errors import GeneratorError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.trace_frame import TraceFrame

HINT = "take its values before the branch or loop (list(...)), or use an index in place of the iterator"


class Steps:
    """An iterator of Python's that was made under a capture: whoever advances it, star syntax too, is noted."""

    __slots__ = ("advances", "iterator")
    # It leads the user's code to something.
    goes_over = True

    def __init__(self, advances: Advances, iterator: Iterator[Any]) -> None:
        self.advances = advances
        self.iterator = iterator

    @property  # type: ignore[misc]  # it is written to nowhere
    def __class__(self) -> type:
        """What ``isinstance`` of the user's is told."""
        return type(self.iterator)

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> Any:
        self.advances.note(self)
        return next(self.iterator)

    def __length_hint__(self) -> int:
        return operator.length_hint(self.iterator)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise GeneratorError("an iterator is copied", hint=HINT)


class Place:
    """Stands for a generator expression, which others may advance unseen; keeps nothing alive."""


def iterators_so_far() -> Mapping[int, Any]:
    """All generators, and all of Python's iterators that a capture has noted, by identity: nothing else gets theirs."""
    found = [value for value in gc.get_objects() if type(value) in (types.GeneratorType, Steps, Place)]
    return {id(value): value for value in found}


def is_iterator(value: Any) -> bool:
    """Whether a value is a generator or one of Python's own iterators."""
    return isinstance(value, (types.GeneratorType, Steps)) or (
        isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools")
    )


class Advances:
    """Where each iterator was advanced last."""

    def __init__(
        self, trace_frames: list[TraceFrame], comprehensions: list[Any], convert_class: Callable[[type], None]
    ) -> None:
        # The open trace frames and comprehensions of the capture, as they change.
        self.trace_frames, self.comprehensions = trace_frames, comprehensions
        self.convert_class = convert_class
        # By identity; the iterators are kept alive, so that identities stay unique.
        self.last: dict[int, tuple[Any, TraceFrame]] = {}
        # What the frames of generators have under way: loops, with statements and the like.
        self.drivers: dict[FrameType, list[Any]] = {}

    def driver(self, made: Any) -> Any:
        """A driver was made, by an operator that the user's code called."""
        frame = sys._getframe(3)
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            self.drivers.setdefault(frame, []).append(made)
        return made

    def shift(self, frame: FrameType, subgraphs: int) -> None:
        """A generator goes on inside more subgraphs than before, or fewer: of its consumer, not of its own."""
        for made in self.drivers.get(frame, ()):
            made.depth += subgraphs

    def note(self, iterator: Any) -> None:
        """``iterator`` is about to be advanced."""
        if not is_iterator(iterator):
            self.convert_class(type(iterator))  # one of the user's own keeps its place in attributes
            return
        self.advance(iterator)

    def advance(self, iterator: Any) -> None:
        """As ``note``, of what is known to be an iterator, or to stand for one."""
        if any(id(iterator) in clause.older for clause in self.comprehensions):
            raise GeneratorError(
                "an iterator from outside is advanced in a comprehension over a tensor, but one piece of the graph "
                "computes all its elements",
                hint=HINT,
                location=self._place(),
            )
        known = self.last.get(id(iterator))
        if known is not None and not self.is_open(known[1]):
            raise GeneratorError(
                "an iterator is advanced under a tensor condition or in a staged loop, and again outside of it",
                hint=HINT,
                location=self._place(),
            )
        self.last[id(iterator)] = (iterator, self.trace_frames[-1])

    def is_open(self, scope: TraceFrame) -> bool:
        """Whether code still runs in a scope, or in what a tried iteration has become part of."""
        while scope.merged is not None:
            scope = scope.merged
        return any(scope is other for other in self.trace_frames)

    def noted(self, made: Any) -> Any:
        """What to go on with in place of what a call of Python's own has made."""
        known = isinstance(made, (types.GeneratorType, Steps)) or not is_iterator(made)
        return made if known else Steps(self, made)

    def watched(self, iterable: Any) -> Any:
        """What to iterate in place of ``iterable``."""
        if isinstance(iterable, Steps):
            return iterable
        if is_iterator(iterable):
            return self._steps(iterable)
        if type(iterable).__module__ not in ("builtins", "torch"):
            self.convert_class(type(iterable))
        return iterable

    def _steps(self, iterator: Any) -> Iterator[Any]:
        missing = object()
        while True:
            self.note(iterator)
            value = next(iterator, missing)
            if value is missing:
                return
            yield value

    def refuse_foreign(self) -> None:
        """A generator goes on that was started before the model was captured."""
        raise GeneratorError(
            "a generator that was started outside of the model is advanced inside",
            hint="start it in the model, or pass its values in",
            location=self._place(),
        )

    def _place(self) -> Any:
        return location_of(users_frame())
