"""An ``if`` on a tensor: both suites run, one after the other, each in a subgraph of its own."""

from __future__ import annotations

from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any, Self

import torch

from dy2st.source.user_frames import location_of
from dy2st.staging.branches.paths import close_to, flow_at_end, guard_rest, merge
from dy2st.staging.branches.size_recursion import check_depth
from dy2st.staging.cases import narrowed
from dy2st.staging.flow import RAISES, Flow, Own, StagedJump
from dy2st.staging.refusals import raised_at
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import TraceFrame, variables
from dy2st.values.journal import Journal
from dy2st.values.undefined import UNSET, Undefined, no_value


class Arm:
    """The suite of an arm with jumps in it: a jump ends the arm."""

    def __init__(self, branch: StagedBranch) -> None:
        self.branch = branch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, jump: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(jump, StagedJump):
            self.branch.jump = jump.flow
            return True
        if isinstance(jump, Exception) and (place := raised_at(jump)) is not None:
            capture = self.branch.capture
            statement = capture.catching(jump)
            if statement is not None:
                self.branch.jump = statement.caught_flow(jump)
                return True
            if capture.watched and capture.leaves(jump):
                self.branch.jump = Flow({RAISES: place}, {RAISES: True})
                return True
        return False


class StagedBranch:
    """Drives the suites of one ``if`` statement or ternary."""

    staged = True

    def __init__(
        self, capture: Session, test: torch.Tensor, names: tuple[str, ...], frame: FrameType, construct: str = ""
    ) -> None:
        check_depth(capture, test, frame)
        self.capture = capture
        self.test = test
        self.names = names
        self.location = replace(location_of(frame), construct=construct)
        self.frame = frame
        env = variables(frame, names)
        self.old = {n: capture.present(env[n]) for n in names}
        self.depth = capture.depth
        self.jump: Flow | None = None
        self.scope: TraceFrame | None = None
        self.ended: Flow | None = None
        self.ended_scope: TraceFrame | None = None

    # ---- driven by the rewritten code

    def then(self) -> bool:
        """Trace the then-suite (now)."""
        self.scope = self.capture.push(f"then_{self.location.line}", arm=True)
        self.capture.learn(self.scope, self.test, value=True)
        return True

    def arm(self) -> Arm:
        """Context of a suite with jumps."""
        return Arm(self)

    def orelse(self) -> bool:
        """Trace the else-suite (now)."""
        self.ended_scope = self.scope
        self.ended = self._end(self._environment())
        self.scope = self.capture.push(f"else_{self.location.line}", arm=True)
        self.capture.learn(self.scope, self.test, value=False)
        return True

    def restore(self) -> tuple[Any, ...]:
        """The values of the names before the statement, for the else-suite."""
        return tuple(self._usable(n, self.old[n]) for n in self.names)

    def join(self) -> tuple[Any, ...]:
        """End of the statement: the joined values of the names; or a jump, if no path goes on here."""
        if self.ended is None:
            self.orelse()
            flow = self._continue_with(Flow(self._environment() | self.old))
        else:
            flow = self._continue_with(Flow(self._environment()) if self.jump is None else self.jump)
        self._forget()
        return tuple(self._usable(n, flow.env.get(n, UNSET)) for n in self.names)

    def choose(self, then: Any, orelse: Any) -> Any:
        """The value of a ternary: ``then`` and ``orelse`` were evaluated in the arms."""
        # ``orelse()`` ended the first arm before the second value was evaluated.
        assert self.ended is not None
        assert self.ended_scope is not None
        assert self.scope is not None
        around = self.capture.trace_frames[: self.depth]
        self.ended.env[Own.RESULT] = narrowed(self.capture, then, [*around, self.ended_scope])
        other = self._end({**self._environment(), Own.RESULT: orelse})
        subgraphs = (self.ended_scope.subgraph, self.scope.subgraph)
        flow = merge(self.capture, self.test, subgraphs, (self.ended, other), (Own.RESULT, *self.names), self.location)
        if flow.raised or not flow.falls:
            raise StagedJump(flow)
        if flow.flags:
            guard_rest(self.capture, flow, self.location)
        value = flow.env[Own.RESULT]
        self._forget()
        self.old = {name: flow.env.get(name, UNSET) for name in self.names}
        if isinstance(value, Undefined):
            value.refuse()
        return value

    def before(self, name: str) -> Any:
        """What a variable was before the ternary."""
        return self._usable(name, self.old[name])

    def bound(self, name: str) -> Any:
        """What a variable is that an arm of the ternary has bound."""
        return self._usable(name, self.old.pop(name))

    def _forget(self) -> None:
        """Keep no value alive, which something else might then seem to refer to: this stays in the user's frame."""
        self.old.clear()
        self.ended = self.ended_scope = self.scope = self.jump = None

    # ---- the ends of the arms

    def _environment(self) -> dict[Any, Any]:
        return variables(self.frame, self.names)

    def _end(self, env: dict[Any, Any]) -> Flow:
        """End the arm that is being traced."""
        flow = self.jump if self.jump is not None else Flow(env)
        self.jump = None
        flow = close_to(self.capture, self.depth + 1, flow, self.names)
        assert self.scope is not None
        ended = flow_at_end(self.capture, flow, self.scope)
        self.capture.pop()
        return ended

    def _continue_with(self, flow: Flow) -> Flow:
        """How control goes on after both suites; ``flow`` is how the else-suite ended."""
        capture, then, scope = self.capture, self.ended, self.scope
        assert then is not None
        assert scope is not None
        assert self.ended_scope is not None
        # No path leads on from an exception: the other arm needs no arm.
        raised = then.raised or flow.raised or scope.failure is not None
        if not raised and flow.only_falls and not then.falls and capture.depth == self.depth + 1:
            # The rest of the block moves into the else-arm.
            capture.trace_frames.pop()
            capture.leave_pending(
                self.test, self.ended_scope.subgraph, then, scope.subgraph, scope.journal, True, self.location
            )
            return flow
        self.jump = flow
        orelse = self._end({})
        if not raised and then.only_falls and not orelse.falls:
            # The rest of the block moves into the then-arm.
            journal: Journal = self.ended_scope.journal
            capture.leave_pending(
                self.test, scope.subgraph, orelse, self.ended_scope.subgraph, journal, False, self.location
            )
            journal.put(then.stores)
            return then
        subgraphs = (self.ended_scope.subgraph, scope.subgraph)
        return self._go_on(merge(capture, self.test, subgraphs, (then, orelse), self.names, self.location))

    def _go_on(self, joined: Flow) -> Flow:
        if joined.only_falls:
            return joined
        if not joined.falls:
            raise StagedJump(joined)
        guard_rest(self.capture, joined, self.location)
        return joined

    def _usable(self, name: str, value: Any) -> Any:
        return no_value(name, self.location) if value is UNSET else value
