"""Functions with early returns under a capture, and suites that a jump can't leave."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Self

from dy2st.errors import CaughtError, JumpError, StagingError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.implicit_exceptions import exceptions_named, refusal
from dy2st.staging.branches.paths import close_to, guard_rest
from dy2st.staging.flow import RAISES, Flow, StagedJump, is_exception
from dy2st.staging.session import Session


class CapturedFunction:
    """One run of a function: a return on a staged path is a jump to its end."""

    def __init__(self, capture: Session) -> None:
        self.capture = capture
        self.depth = capture.depth
        self.value: Any = None
        # Containers that stand for what is returned, with those from before the arms that they stand for.
        self.returned: list[tuple[Any, list[Any]]] = []

    def __enter__(self) -> Self:
        return self

    def returns(self, value: Any) -> Any:
        """``return value``: native outside staged subgraphs of this function, else a jump."""
        if self.capture.depth == self.depth:
            return value
        key = ("return", self)
        raise StagedJump(Flow({key: value}, {key: True}))

    def raises(self) -> None:
        """``raise`` follows."""
        frame = sys._getframe(1)
        leave_by_exception(
            self.capture, frame, list(exceptions_named(frame)) if self.capture.implicit_exceptions else []
        )

    def __exit__(
        self, kind: type[BaseException] | None, jump: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        key = ("return", self)
        if isinstance(jump, StagedJump):
            flow = jump.flow
        elif kind is None and self.capture.depth > self.depth:
            flow = Flow({key: None}, {key: True})
        else:
            return False
        flow = close_to(self.capture, self.depth, flow)
        if flow.raised:
            raise StagedJump(flow)
        caught = Flow(flow.env, {jump: flag for jump, flag in flow.flags.items() if is_exception(jump)})
        if key in flow.flags and caught.flags and len(flow.flags) == 1 + len(caught.flags):
            guard_rest(self.capture, caught, location_of(users_frame()))
        elif flow.flags.get(key) is not True or len(flow.flags) > 1:
            raise StagingError(
                "a jump out of this function's staged code could not be resolved",
                hint="return in one place, behind the function's branches and loops",
            )
        self.value = flow.env[key]
        for built, older in self.returned:
            self.capture.may_be_older(built, *older)
        return True


def leave_by_exception(capture: Session, frame: FrameType, kinds: Sequence[type[Exception]]) -> None:
    """An exception of one of ``kinds`` is raised next: native where no condition decides about it, else a guard."""
    implicit = [watch for watch in capture.implicit_exceptions if any(map(watch.catches, kinds))]
    since = max((watch.depth for watch in (*capture.watched, *implicit)), default=1)
    if all(scope.certain for scope in capture.trace_frames[since:]):
        return
    if implicit:
        raise refusal(
            next(kind.__name__ for kind in kinds for watch in implicit if watch.catches(kind)), location_of(frame)
        )
    if capture.watched:
        if capture.watched[-1].statement is not None:
            return  # the arm that it leaves hands it on to the statement
        raise CaughtError(
            "an exception raised under a tensor condition may be caught by a try statement around it",
            hint="test for the case with an if on the tensor in place of the exception",
            location=location_of(frame),
        )
    raise StagedJump(Flow({RAISES: location_of(frame)}, {RAISES: True}))


class CapturedBlock:
    """The suite of a ``try``/``finally`` with jumps in it: what ``finally`` does belongs to both paths."""

    def __init__(self, capture: Session) -> None:
        self.capture = capture
        self.depth = capture.depth

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, jump: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(jump, StagedJump) or (kind is None and self.capture.depth > self.depth):
            raise JumpError(
                "a jump under a tensor condition leaves a try/finally statement",
                hint="move the break, continue or return behind that statement (set a variable inside it)",
                location=location_of(sys._getframe(1)),
            )


class WithBlock:
    """The suite of a ``with`` with jumps in it: the manager's exit runs on the path that goes on only."""

    def __init__(self, capture: Session, frame: FrameType) -> None:
        self.capture = capture
        self.frame = frame
        self.depth = capture.depth

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, jump: object, traceback: object) -> None:
        if self.capture.depth > self.depth:
            self.capture.leaving.append(self.frame)
