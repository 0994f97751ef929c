"""``try`` statements under a capture.

An exception on a staged path ends its suite on that path, as a ``return`` ends a function: the rest of the suite runs
in the arm of a branch. At the end of the suite the branch is closed. Where a path has ended in an exception, this is
then raised in Python, inside the arm of another branch, so that Python finds the handler; what follows the suite is the
other arm.

    try:
        l = cholesky(a)       # raises if info != 0
        n = n + 1
    except RuntimeError:
        l = None

is traced as

    if info != 0: raised = True
    else: n = n + 1
    if raised: l = None

Source: Python reference, 8.4 The try statement.
"""

from __future__ import annotations

import builtins
import sys
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Self

import torch

from dy2st.errors import CaughtError, Location
from dy2st.operators.jumps import NO_ARM
from dy2st.source.user_frames import location_of
from dy2st.staging.branches.paths import close_to, guard_rest
from dy2st.staging.branches.staged_branch import StagedBranch
from dy2st.staging.flow import Flow, StagedJump
from dy2st.staging.refusals import caught_outside, is_refusal
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import Watch, variables
from dy2st.values.staged_text import text_of
from dy2st.values.undefined import UNSET, no_value


@dataclass(frozen=True)
class _Handler:
    """The names of the types that a handler is for, and whether it looks at the exception."""

    kinds: tuple[str, ...]
    looks: bool

    @classmethod
    def of(cls, text: str) -> _Handler:
        named, _, target = text.partition(" as ")
        return cls(tuple(named.split(", ")), bool(target))


class CapturedTry:
    """One run of a ``try`` statement with ``handlers``, whose suites change ``names``.

    A handler is said as in the source: the names of its types, and ``as`` what, if it looks at the exception. Without
    names the statement is left to Python, and takes no exception from a staged path.
    """

    catches = True

    def __init__(
        self, capture: Session, handlers: tuple[str, ...], names: tuple[str, ...] | None, frame: FrameType
    ) -> None:
        self.capture = capture
        self.names = names or ()
        self.frame = frame
        self.depth = capture.depth
        # Whether a staged path has ended in an exception: the values of the names then come from here.
        self.staged = False
        self.location = location_of(frame)
        # As of a function: containers that stand for what was there where it was raised.
        self.returned: list[tuple[Any, list[Any]]] = []
        self._handlers = [_Handler.of(each) for each in handlers]
        kinds = tuple(kind for handler in self._handlers for kind in handler.kinds)
        self._watch = Watch(capture.depth, kinds, None if names is None else self)
        self._error: Exception | None = None
        self._branch: StagedBranch | None = None
        self._env: dict[Any, Any] = {}
        self._rest = Flow({})
        self._ends = True

    # ---- driven by the rewritten code

    def body(self) -> Self:
        """The suite that the handlers watch."""
        return self

    def __enter__(self) -> Self:
        self.capture.watched.append(self._watch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, jump: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.capture.watched.pop()
        if self._error is None or not (kind is None or isinstance(jump, StagedJump)):
            return
        self._end(jump.flow if isinstance(jump, StagedJump) else Flow(variables(self.frame, self.names)))

    def caught(self) -> None:
        """A handler runs: it must be on the same path as the exception, and may not hide a refusal."""
        self._ends = False
        error = sys.exc_info()[1]
        if error is not None and is_refusal(error):
            raise error
        if self.capture.depth != self.depth + (self._branch is not None):
            raise caught_outside(sys._getframe(1))

    def restore(self) -> tuple[Any, ...]:
        """The values of the names where a handler or the else clause begins."""
        return self._values(self._env)

    def orelse(self) -> bool:
        """Whether the else clause runs (now)."""
        if self._branch is None:
            return self._ends
        return self._go_on(self._branch)

    def arm(self) -> Any:
        """Context of a handler or else clause with jumps."""
        return NO_ARM if self._branch is None else self._branch.arm()

    def join(self) -> tuple[Any, ...]:
        """End of the statement: the joined values of its names."""
        branch = self._branch
        if branch is None:
            return self._values(self._env if self._ends else variables(self.frame, self.names))
        if branch.ended is None and self._go_on(branch):
            branch.jump = Flow(dict(self._env))
        return branch.join()

    def _go_on(self, branch: StagedBranch) -> bool:
        """The handler has ended: trace what follows the suite where there was no exception, if anything does."""
        branch.orelse()
        rest, self._rest = self._rest, Flow({})
        self._env = rest.env
        if not rest.falls:
            branch.jump = rest
        elif rest.flags:
            guard_rest(self.capture, rest, self.location)
        return rest.falls

    # ---- told by what raises

    def takes(self, error: Exception) -> bool:
        """Whether one of the handlers is certainly for such an exception."""
        return self._handler_of(error) is not None

    def lets_pass(self, error: Exception) -> bool:
        """Whether certainly none of the handlers is for such an exception."""
        kinds = [self._type(name) for handler in self._handlers for name in handler.kinds]
        return None not in kinds and not any(kind is not None and isinstance(error, kind) for kind in kinds)

    def caught_flow(self, error: Exception) -> Flow:
        """How a path goes on that ends in ``error``: at the end of the suite."""
        if self._error is not None:
            handler = self._handler_of(error)
            alike = type(error) is type(self._error) and text_of(error) == text_of(self._error)
            if handler is not self._handler_of(self._error) or (handler is not None and handler.looks and not alike):
                raise CaughtError(
                    f"two exceptions may reach the handlers of one try statement, {self._error!r} and {error!r}, each"
                    " from a path of its own",
                    hint="test for one of the cases with an if in place of the exception",
                )
        self._error = error
        # A variable may have what an earlier trace of a loop's body has left in it.
        env = {name: self.capture.present(value) for name, value in variables(self.frame, self.names).items()}
        key = ("return", self)
        return Flow({key: tuple(env.get(name, UNSET) for name in self.names)}, {key: True})

    def _handler_of(self, error: Exception) -> _Handler | None:
        """The first handler for an exception; None if that is not known."""
        for handler in self._handlers:
            kinds = [self._type(name) for name in handler.kinds]
            if any(kind is not None and isinstance(error, kind) for kind in kinds):
                return handler
            if None in kinds:
                return None
        return None

    def _type(self, name: str) -> type | None:
        """The type that a handler names; None if it is not known."""
        first, *rest = name.split(".")
        frame = self.frame
        found = frame.f_locals.get(first, frame.f_globals.get(first, getattr(builtins, first, None)))
        for part in rest:
            found = getattr(found, part, None)
        return found if isinstance(found, type) else None

    def _end(self, flow: Flow) -> None:
        """The suite has ended on all paths, with an exception on some."""
        key = ("return", self)
        jumps = not flow.falls
        flow = close_to(self.capture, self.depth, flow, self.names)
        if flow.raised:
            raise StagedJump(flow)
        raised = flow.flags.pop(key, None)
        self.staged = True
        if raised is None:  # those paths were impossible
            self._env = flow.env
            if not flow.falls:
                raise StagedJump(flow)
            if flow.flags:
                guard_rest(self.capture, flow, self.location)
            return
        assert self._error is not None
        for built, older in self.returned:
            self.capture.may_be_older(built, *older)
        self._env = dict(zip(self.names, flow.env.pop(key), strict=True))
        if raised is not True:
            if jumps and len(flow.flags) == 1:
                flow.flags = dict.fromkeys(flow.flags, True)
            self._rest = flow
            self._branch = StagedBranch(self.capture, raised, self.names, self.frame, "try")
            self._branch.old.clear()
            self._branch.then()
        raise self._error from None

    def _values(self, env: dict[Any, Any]) -> tuple[Any, ...]:
        found = ((name, env.get(name, UNSET)) for name in self.names)
        return tuple(no_value(name, self.location) if value is UNSET else value for name, value in found)


def raise_if(capture: Session, test: torch.Tensor, error: Exception, location: Location) -> None:
    """What follows runs where ``test`` does not hold; elsewhere ``error`` is raised, which a ``try`` takes."""
    statement = capture.catching(error)
    assert statement is not None
    flow = statement.caught_flow(error)
    guard_rest(capture, Flow(flow.env, dict.fromkeys(flow.flags, test)), location)
