"""Generators under a capture: Python runs them, and they hand over control outside of staged subgraphs only."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from dy2st.errors import GeneratorError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.loops.gathered_generators import gathered_from, is_gathered, not_gathered
from dy2st.staging.session import MODE, Session


class CapturedGenerator:
    """One run of a generator function."""

    def __init__(self, capture: Session, frame: FrameType) -> None:
        self.capture = capture
        self.frame = frame
        self.gathered = is_gathered(frame)
        self.scope = capture.trace_frames[-1]
        self.depth = capture.depth
        self.cleaned_up = False

    def yields(self, value: Any = None, cleaned_up: bool = False) -> Any:
        """``yield value`` follows: no arm or body of the generator's own may be open.

        ``cleaned_up``: inside of a ``with`` or ``try``/``finally``, which ends even if the generator is not resumed.
        """
        outside = MODE.capture is not self.capture or self.capture.trace_frames[-1] is self._current()
        if not outside and not self.gathered:
            raise not_gathered("a generator yields under a tensor condition or in a staged loop", self.frame)
        self.cleaned_up = cleaned_up
        return value

    def delegates(self, iterable: Any, cleaned_up: bool = False) -> Any:
        """``yield from iterable`` follows: as ``yield`` of each of its elements."""
        return gathered_from(self.frame, self.yields(iterable, cleaned_up))

    def resumed(self, sent: Any) -> Any:
        """The generator goes on where its consumer is now."""
        if MODE.capture is not self.capture or self.gathered:
            return sent
        if not self.capture.advances.is_open(self.scope):
            raise GeneratorError(
                "a generator is advanced under a tensor condition or in a staged loop, and again outside of it",
                hint="take its values before the branch or loop (list(...))",
                location=location_of(sys._getframe(1)),
            )
        if self.cleaned_up and not self._in_any_case():
            raise GeneratorError(
                "a generator that yields inside a try/finally or with statement is advanced under a tensor condition "
                "or in a staged loop: where it is not advanced, the statement ends when the generator is deleted",
                hint="take its values before the branch or loop (list(...))",
                location=location_of(users_frame()),
            )
        self.scope = self.capture.trace_frames[-1]
        self.capture.advances.shift(sys._getframe(1), self.capture.depth - self.depth)
        self.depth = self.capture.depth
        return sent

    def _in_any_case(self) -> bool:
        """Whether the generator goes on wherever it has yielded, as far as the graph decides it."""
        current = self._current()
        trace_frames = [scope for scope in self.capture.trace_frames if scope is current or not scope.certain]
        return trace_frames[-1] is current

    def _current(self) -> Any:
        scope = self.scope
        while scope.merged is not None:
            scope = scope.merged
        return scope
