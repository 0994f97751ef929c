"""``while`` and ``for`` under a capture: native as long as Python decides, else driven until the state is stable.

A staged loop's body runs natively, once for each discovery of its state: what it changes of the variables and of
everything else (the journal). The state is the fixpoint of *join(before, after one body)*; the last run of the body is
the one that is emitted. ``Phase`` says where a run of the statement stands:

    NATIVE      Python carries it out. A condition, or a length, that is data-dependent stages it.
    TRYING      one iteration, whose body has jumps, is traced in a frame of its own: a jump may be data-dependent. The
                frame becomes part of the one around it (NATIVE again), unless a ``break`` or ``return`` is.
    RESTARTING  it is: the loop's header undoes the iteration and stages the loop from there on.
    STAGED      the body is being traced. Where an iteration ends, the state is stable or the body is traced once more.
    DONE        the loop has been emitted, or left out because none of its iterations returns.
    LEFT        a native loop was left by a ``break`` under a condition that Python knows.
"""

from __future__ import annotations

from types import FrameType, TracebackType
from typing import Any, Self

import torch

from dy2st.errors import LoopHintError
from dy2st.staging.branches.paths import close_to, guard_rest
from dy2st.staging.conditions import condition, either, negated, truth_number
from dy2st.staging.flow import RAISES, Flow, StagedJump
from dy2st.staging.loops.first_iteration import FirstIteration
from dy2st.staging.loops.gathered_generators import begun
from dy2st.staging.loops.hinted import Hinted, rolled_steps
from dy2st.staging.loops.iterables import StagedIterable, as_iterable, at_least_zero, indexable
from dy2st.staging.loops.last_values import left_apart, with_left
from dy2st.staging.loops.limits import LoopLimits
from dy2st.staging.loops.loop_emission import LoopEmission, mark_loop
from dy2st.staging.loops.loop_state import LoopState
from dy2st.staging.loops.template import LoopStatement, Phase
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import Failure
from dy2st.tracing.tracer import at_least
from dy2st.values.number import Number
from dy2st.values.undefined import UNSET


class CapturedLoop(LoopStatement):
    """One run of a loop statement."""

    def __init__(
        self, capture: Session, names: tuple[str, ...], targets: tuple[str, ...], yields: bool, frame: FrameType
    ) -> None:
        super().__init__(capture, names, targets, yields, frame)
        self.first = FirstIteration(self)
        self.state_found: LoopState | None = None
        self.flow: Flow | None = None
        self.iterable: StagedIterable | None = None
        # A while can be staged at any iteration; a for only if its elements can be computed from an index. What a
        # generator's consumer has done in the meantime can't be undone.
        self.restartable = not self.yields
        self.unrolled = False
        self.limits = LoopLimits(capture, self.location)
        self.index = 0
        self.broke: Any = False
        # The variables' values, where these are not what the user's frame has.
        self.values: dict[Any, Any] | None = None

    # ---- driven by the rewritten code

    @property
    def staged(self) -> bool:
        """Whether names have to be read from here."""
        in_arms = self.capture.depth > self.depth - self.first.arms
        return not self.phase.python or in_arms or self.values is not None

    @property
    def completed(self) -> Any:
        """Whether the loop ended without ``break``."""
        return truth_number(negated(self.broke))

    def test(self, value: Any) -> Any:
        """The test of a ``while``, evaluated before each iteration."""
        hint = value if isinstance(value, Hinted) else Hinted(value)
        if self.phase is Phase.RESTARTING:
            self.capture.abandon(self.depth)
            self.limits.promise(hint, self.limits.copies - 1, True)
            self._stage(None, self.limits.limit)
            return True
        if self.phase is Phase.STAGED:
            return self._iteration_ends(self.limits.bounded(condition(hint.value), self._state.counter))
        if self.phase is Phase.LEFT:
            return False
        self.first.over()
        self.active = False
        decided = condition(hint.value)
        if isinstance(decided, bool) and not (decided and hint.rolled):
            if decided and self.first.due:
                self.first.take_apart(True, once=True, trips=None)
            self.limits.count(decided)
            self.begins(decided)
            return decided
        if self.first.due:
            self.first.take_apart(decided, once=decided is True, trips=None)
            self.limits.count(True)
            self.begins(True)
            return True
        self.before = self.entered()
        self.limits.promise(hint, self.limits.copies, decided)
        self._stage(None if decided is True else decided, self.limits.limit)
        return True

    def over(self, iterable: Any) -> Any:
        """The iterable of a ``for``."""
        hint = iterable if isinstance(iterable, Hinted) else Hinted(iterable)
        iterable = begun(self.capture, hint.value)
        found = rolled_steps(iterable) if hint.rolled else as_iterable(iterable)
        self.iterable = found if found is None else found.begin()
        self.unrolled = hint.unrolled
        if self.iterable is None:
            return self._native_iterations(iterable)
        if self.unrolled:
            raise LoopHintError(
                f"this loop can't be unrolled: the length of {self.iterable.what} is data-dependent",
                hint="leave dy2st.unrolled out, or export with a static size",
                location=self.location,
            )
        return self._staged_iterations()

    def body(self) -> Self:
        """Context of a body with jumps."""
        self.jumps = True
        return self

    def __enter__(self) -> Self:
        self.body_starts()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, jump: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if jump is not None and not isinstance(jump, StagedJump):
            return False
        return self.body_ends(jump.flow if jump is not None else None)

    def breaks(self) -> None:
        """A ``break`` follows: native outside staged subgraphs, else a jump."""
        self._jump("break")

    def continues(self) -> None:
        """A ``continue`` follows."""
        self._jump("continue")

    def state(self) -> tuple[Any, ...]:
        """The names' values at the head of an iteration."""
        if self.phase is Phase.STAGED:
            return tuple(self._state.head[n] for n in self.names)
        return self._current(self.names)

    def settle(self) -> tuple[Any, ...]:
        """The names' values after a body with jumps."""
        values = self.values
        if values is None:
            return self._current(self.names)
        # The next element takes the targets' place, unless this one was the last.
        targets = {n: values[n] for n in self.targets if n in values}
        self.values = targets if targets and self.phase.python else None
        return tuple(self.usable(n, values.get(n, UNSET)) for n in self.names)

    def result(self) -> tuple[Any, ...]:
        """The names' and targets' values after the loop."""
        if self.phase is Phase.DONE:
            assert self.values is not None
            # This stays in the user's frame: it keeps no value alive, which something else might then seem to refer to.
            values, self.values = self.values, {}
            return tuple(self.usable(n, values.get(n, UNSET)) for n in self.all_names)
        self.before = {}
        if self.capture.depth > (ground := self.depth - self.first.arms):
            flow = close_to(self.capture, ground, Flow(self.environment()), self.all_names)
            flow.flags.pop(self.first.skipped, None)
            flow.env = with_left(self, flow.env, flow.flags)
            self._leave(flow)
            return tuple(self.usable(n, flow.env.get(n, UNSET)) for n in self.all_names)
        return self._current(self.all_names)

    # ---- native iterations

    def _native_iterations(self, iterable: Any) -> Any:
        restartable = indexable(iterable) if isinstance(iterable, (range, torch.Tensor)) else None
        self.restartable = restartable is not None and not self.yields and not self.unrolled
        elements = self.capture.advances.watched(iterable)
        for self.index, element in enumerate(elements):
            if self.phase is Phase.LEFT:
                return
            if restartable is not None:
                self.first.over()
            if self.first.due:
                self.first.take_apart(True, once=True, trips=None)
            self.limits.count(True)
            self.begins(True)
            yield element
            if self.phase is Phase.RESTARTING:
                break
        if self.phase.python:
            self.limits.count(False)
            self.active = False
        if self.phase is Phase.RESTARTING:
            assert restartable is not None
            self.capture.abandon(self.depth)
            first, rest = self.index, restartable
            self.iterable = StagedIterable(rest.length - first, lambda i: rest.element(i + first), rest.what)
            yield from self._staged_iterations(started=True)

    def body_starts(self) -> None:
        """A body with jumps is entered; a native one is tried, since a jump may turn out to be staged."""
        if self.phase is not Phase.NATIVE:
            return
        self.values = None
        self.before = self.entered()
        if self.restartable and self.capture.depth == self.depth:
            self.capture.push(f"iteration_{self.location.line}", certain=True)
            self.phase = Phase.TRYING

    def body_ends(self, jumped: Flow | None) -> bool:
        """The body is left, by a staged jump or otherwise; True if the jump has been dealt with."""
        if self.phase is Phase.STAGED:
            base = self.depth + 1
            if jumped is None and self.capture.depth == base:
                return False
            if jumped is None and not self._continues_above(base):
                # Only breaks and returns: the test of the loop belongs to the arm that goes on.
                return False
            self.flow = self._closed_to(base, jumped)
            self.values = self.flow.env
            return True
        if self.phase is Phase.TRYING:
            return self._trial_ends(jumped)
        return self._native_body_ends(jumped)

    def _trial_ends(self, jumped: Flow | None) -> bool:
        self.phase = Phase.NATIVE
        base = self.depth + 1
        if self.capture.depth == base:
            self.capture.commit()
            return self._native_body_ends(jumped)
        keys = self.capture.pending_jumps(base) | set(jumped.flags if jumped else ())
        if keys <= {("continue", self), RAISES}:
            flow = close_to(self.capture, base, jumped or Flow(self.environment()), self.all_names)
            self.capture.commit()
            self.values = flow.env
            if flow.raised:
                raise StagedJump(flow)
            return True
        # A break or return is data-dependent. Until the header undoes this iteration nothing that runs counts.
        self.phase = Phase.RESTARTING
        self.capture.push("discarded")
        return True

    def _native_body_ends(self, jumped: Flow | None) -> bool:
        if jumped is None and (self.capture.depth == self.depth or not self._continues_above(self.depth)):
            return False
        continues = self._continues_above(self.depth) or (jumped is not None and ("continue", self) in jumped.flags)
        leaves = jumped is not None and not jumped.falls and not continues
        flow = self._closed_to(self.depth, jumped)
        if self.first.whole is not None and leaves:
            # Where the loop is not left before its first iteration, that leaves it.
            self.phase = Phase.LEFT
            self.active = False
            self.values = flow.env = with_left(self, flow.env, flow.flags)
            flow.flags.pop(self.first.skipped, None)
            self._leave(flow)
            return True
        self._leave(flow, ends=True)
        self.values = with_left(self, flow.env, flow.flags) if self.phase is Phase.LEFT else flow.env
        return True

    def _closed_to(self, depth: int, jumped: Flow | None) -> Flow:
        """The end of an iteration as one path: to continue is to reach it."""
        flow = close_to(self.capture, depth, jumped or Flow(self.environment()), self.all_names)
        flow.flags.pop(("continue", self), None)
        return flow

    def _leave(self, flow: Flow, *, ends: bool = False) -> None:
        """After a native loop, or an iteration of it: breaks end here, other jumps go on."""
        own = ("break", self)
        if not ends:
            self.broke = either(self.broke, flow.flags.pop(own, False))
        elif flow.flags.get(own) is True:
            self.broke = True
            self.phase = Phase.LEFT
            self.active = False
            return
        self._jump_on(flow)

    def _jump_on(self, flow: Flow) -> None:
        """The jumps that are left, if there are any, lead further out."""
        if flow.flags:
            if not flow.falls:
                raise StagedJump(flow)
            guard_rest(self.capture, flow, self.location)

    def _continues_above(self, base: int) -> bool:
        return ("continue", self) in self.capture.pending_jumps(base)

    def _jump(self, kind: str) -> None:
        own = self.depth + (1 if self.phase is Phase.TRYING else 0)
        if self.phase.python and self.capture.depth == own:
            if kind == "break":
                self.broke = True
                self.active = False
            return
        raise StagedJump(Flow(left_apart(self, kind, self.environment(), self.state_found), {(kind, self): True}))

    # ---- staged iterations

    @property
    def _state(self) -> LoopState:
        assert self.state_found is not None
        return self.state_found

    def _stage(self, go: Any, trips: Any) -> None:
        self.apart = self.first.whole is not None or self.begun > (self.phase is Phase.RESTARTING)
        self.phase, self.active = Phase.STAGED, True
        self.state_found = LoopState(self, go, trips)
        self.state_found.begin()

    def _staged_iterations(self, *, started: bool = False) -> Any:
        assert self.iterable is not None
        if self.first.due and not started:
            whole = self.iterable
            once = not isinstance(whole.length, Number) and at_least(whole.length, 1)
            self.first.take_apart(condition(whole.length > 0), once=once, trips=whole.length)
            self.begins(True)
            yield whole.element(0)
            if self.phase is Phase.LEFT:
                return
            self.first.over()
            left = at_least_zero(whole.length - 1)
            self.iterable = StagedIterable(left, lambda i: whole.element(i + 1), whole.what)
        if not started:
            self.before = self.entered()
        self._stage(None, self.iterable.length)
        while True:
            yield self.iterable.at(self._state.counter)
            self.iterable.check()
            if not self._iteration_ends(self.takes_next()):
                return

    def _iteration_ends(self, go: Any) -> bool:
        """The end of a traced iteration; True to trace the body once more."""
        state = self._state
        if state.scope.failure is not None:
            return self._never_runs(state, state.scope.failure)
        flow = self.flow if self.flow is not None else Flow(self.environment())
        self.flow = None
        self.values = None
        with state.ending():
            if not state.end(state.with_condition(flow, go)):
                return True
            values, flags = LoopEmission(state).run()
        endless = go is True and state.go is None and state.trips is None
        flags = dict.fromkeys(flags, True) if endless and len(flags) == 1 else flags  # only that jump leaves it
        self.values = with_left(self, values, flags, endless=endless)
        if self.reported:
            trips = state.trips if state.go is None else None
            once, trips = self.first.whole or (state.runs_once, trips)
            mark_loop(self, once=once, trips=trips, left=self.iterable is not None and bool(flags), jumped=bool(flags))
        self._done(flags)
        return False

    def _done(self, flags: dict[Any, Any]) -> None:
        """The loop has been emitted, or left out."""
        self.phase = Phase.DONE
        self.active = False
        self.state_found, self.before = None, {}
        rest = Flow({**self.environment(), **(self.values or {})}, flags)
        if self.first.arms:
            rest = close_to(self.capture, self.depth - self.first.arms, rest, self.all_names)
            rest.flags.pop(self.first.skipped, None)
            self.values = rest.env = with_left(self, rest.env, rest.flags)
        self.broke = rest.flags.pop(("break", self), False)
        self._jump_on(rest)

    def _never_runs(self, state: LoopState, failure: Failure) -> bool:
        """Each iteration fails: eager raises, unless there is none."""
        self.capture.abandon(self.depth)
        runs = state.go if state.go is not None else condition(state.trips > 0)
        self.capture.guards.require(negated(runs), failure.location, always=True)
        self.values = {name: self.before.get(name, UNSET) for name in self.all_names}
        self._done({})
        return False

    # ---- variables

    def environment(self) -> dict[Any, Any]:
        """The variables as they are now."""
        env = super().environment()
        if self.phase.python and self.values is not None:
            # The end of an iteration with jumps: the frame has the targets of the path that was traced last.
            env.update((n, self.values[n]) for n in self.targets if n in self.values)
        return env

    def _current(self, names: tuple[str, ...]) -> tuple[Any, ...]:
        env = self.environment()
        return tuple(self.usable(n, env.get(n, UNSET)) for n in names)
