"""``while`` and ``for`` under a capture: native as long as Python decides, else driven until the state is stable.

A staged loop's body runs natively, once for each discovery of its state: what it changes of the variables and of
everything else (the journal). The state is the fixpoint of *join(before, after one body)*; the last run of the body is
the one that is emitted.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

import torch

from dy2st.errors import LoopHintError, RaiseError
from dy2st.staging.branches.case_distribution import iterated
from dy2st.staging.branches.paths import close_to, guard_rest
from dy2st.staging.conditions import both, condition, either, negated, truth_number
from dy2st.staging.flow import RAISES, Flow, StagedJump
from dy2st.staging.frames import look_up, snapshot
from dy2st.staging.loops.hinted import Hinted, rolled_steps
from dy2st.staging.loops.iterables import StagedIterable, as_iterable, at_least_zero, indexable
from dy2st.staging.loops.limits import LoopLimits
from dy2st.staging.loops.loop_emission import LoopEmission
from dy2st.staging.loops.loop_state import LoopState
from dy2st.staging.loops.template import LoopStatement
from dy2st.staging.peeling import FIRST_ITERATIONS
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import Failure, TraceFrame
from dy2st.tracing.tracer import at_least
from dy2st.values.number import Number
from dy2st.values.plain_objects import OBJECTS
from dy2st.values.undefined import UNSET, Undefined


class Body:
    """The body of a loop with jumps in it."""

    def __init__(self, loop: CapturedLoop) -> None:
        self.loop = loop

    def __enter__(self) -> Self:
        self.loop.body_starts()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, jump: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if jump is not None and not isinstance(jump, StagedJump):
            return False
        return self.loop.body_ends(jump.flow if jump is not None else None)


class CapturedLoop(LoopStatement):
    """One run of a loop statement."""

    def __init__(self, capture: Session, names: tuple[str, ...], targets: tuple[str, ...], yields: bool) -> None:
        super().__init__(capture, names, targets, yields, sys._getframe(3))
        self.depth = capture.depth
        # Behind a first iteration that is taken out the loop is staged in arms of its own: so many.
        self.arms = 0
        self.phase = "native"
        self.first_is_due = not yields and FIRST_ITERATIONS.apart.get(self.site, False)
        # What is known of the whole loop, once its first iteration is apart.
        self.whole: tuple[bool, Any] | None = None
        self.speculation: TraceFrame | None = None
        self.stage: LoopState | None = None
        self.flow: Flow | None = None
        self.iterable: StagedIterable | None = None
        # A while can be staged at any iteration; a for only if its elements can be computed from an index.
        # What a generator's consumer has done in the meantime can't be undone.
        self.restartable = not yields
        self.unrolled = self.jumps = False
        self.limits = LoopLimits(capture, self.location)
        self.index = 0
        self.broke: Any = False
        self.finished = False
        self.values: dict[Any, Any] | None = None

    # ---- driven by the rewritten code

    @property
    def staged(self) -> bool:
        """Whether names have to be read from here."""
        return self.phase != "native" or self.capture.depth > self.depth or self.values is not None

    @property
    def completed(self) -> Any:
        """Whether the loop ended without ``break``."""
        return truth_number(negated(self.broke))

    def test(self, value: Any) -> Any:
        """The test of a ``while``, evaluated before each iteration."""
        hint = value if isinstance(value, Hinted) else Hinted(value)
        if self.phase == "restart":
            self.capture.abandon(self.depth)
            self.limits.promise(hint, self.limits.copies - 1, True)
            self._stage(None, self.limits.limit)
            return True
        if self.phase == "staged":
            assert self.stage is not None
            return self._iteration_ends(self.limits.bounded(condition(hint.value), self.stage.counter))
        if self.finished:
            return False
        self._first_is_over()
        decided = condition(hint.value)
        if isinstance(decided, bool) and not (decided and hint.rolled):
            if decided and self.first_is_due:
                self._first_apart(True, once=True, trips=None)
            self.limits.count(decided)
            return decided
        if self.first_is_due:
            self._first_apart(decided, once=decided is True, trips=None)
            self.limits.count(True)
            return True
        self.before = self._environment()
        self.limits.promise(hint, self.limits.copies, decided)
        self._stage(None if decided is True else decided, self.limits.limit)
        return True

    def _first_apart(self, go: Any, *, once: bool, trips: Any) -> None:
        """The first iteration is not part of the loop; if it may not take place, all of it is an arm."""
        self.first_is_due = self.restartable = False
        self.whole = once, trips
        if not once:
            # Python may end it before it is staged.
            self.capture.sites.loop(self.location, fewest=0, trips=1, jumps=True, left=False)
            skipped = {("stop", self): negated(go)}
            guard_rest(self.capture, Flow(self._environment(), skipped), self.location)

    def _first_is_over(self) -> None:
        """What follows a first iteration that is apart is a loop like any other, maybe in an arm."""
        if self.whole is not None and self.phase == "native":
            self.arms += self.capture.depth - self.depth
            self.depth = self.capture.depth
            self.restartable = not self.unrolled

    def over(self, iterable: Any) -> Any:
        """The iterable of a ``for``."""
        hint = iterable if isinstance(iterable, Hinted) else Hinted(iterable)
        iterable = iterated(self.capture, hint.value)
        self.iterable = rolled_steps(iterable) if hint.rolled else as_iterable(iterable)
        if hint.unrolled:
            self._unroll()
        if self.iterable is not None:
            return self._staged_iterations()
        return self._native_iterations(iterable)

    def _unroll(self) -> None:
        """Python carries the loop out, whatever its jumps depend on."""
        if self.iterable is not None:
            raise LoopHintError(
                f"this loop can't be unrolled: only the graph knows the length of {self.iterable.what}",
                hint="leave dy2st.unrolled out, or export with a static size",
                location=self.location,
            )
        self.unrolled = True

    def body(self) -> Body:
        """Context of a body with jumps."""
        self.jumps = True
        return Body(self)

    def breaks(self) -> None:
        """A ``break`` follows: native outside staged subgraphs, else a jump."""
        self._jump("break")

    def continues(self) -> None:
        """A ``continue`` follows."""
        self._jump("continue")

    def state(self) -> tuple[Any, ...]:
        """The names' values at the head of an iteration."""
        if self.phase == "staged":
            assert self.stage is not None
            return tuple(self.stage.head[n] for n in self.names)
        return self._current(self.names)

    def settle(self) -> tuple[Any, ...]:
        """The names' values after a body with jumps."""
        values = self.values
        if values is None:
            return self._current(self.names)
        # The next element takes the targets' place, unless this one was the last.
        targets = {n: values[n] for n in self.targets if n in values}
        self.values = targets if targets and self.phase == "native" else None
        return tuple(self._usable(n, values.get(n, UNSET)) for n in self.names)

    def result(self) -> tuple[Any, ...]:
        """The names' and targets' values after the loop."""
        if self.phase == "done":
            assert self.values is not None
            # This stays in the user's frame: it keeps no value alive, which something else might then seem to refer to.
            values, self.values = self.values, {}
            return tuple(self._usable(n, values.get(n, UNSET)) for n in self.all_names)
        ground = self.depth - self.arms
        if self.capture.depth > ground:
            flow = close_to(self.capture, ground, Flow(self._environment()), self.all_names)
            flow.flags.pop(("stop", self), None)
            self._leave(flow)
            return tuple(self._usable(n, flow.env.get(n, UNSET)) for n in self.all_names)
        return self._current(self.all_names)

    # ---- native iterations

    def _native_iterations(self, iterable: Any) -> Any:
        restartable = indexable(iterable) if isinstance(iterable, (range, torch.Tensor)) else None
        self.restartable = restartable is not None and not self.yields and not self.unrolled
        elements = self.capture.advances.watched(iterable)
        for self.index, element in enumerate(elements):
            if self.finished:
                return
            if restartable is not None:
                self._first_is_over()
            if self.first_is_due:
                self._first_apart(True, once=True, trips=None)
            self.limits.count(True)
            yield element
            if self.phase == "restart":
                break
        if self.phase == "native":
            self.limits.count(False)
        if self.phase == "restart":
            assert restartable is not None
            self.capture.abandon(self.depth)
            first, rest = self.index, restartable
            self.iterable = StagedIterable(rest.length - first, lambda i: rest.element(i + first), rest.what)
            yield from self._staged_iterations(started=True)

    def _staged_iterations(self, *, started: bool = False) -> Any:
        assert self.iterable is not None
        if self.first_is_due and not started:
            whole = self.iterable
            once = not isinstance(whole.length, Number) and at_least(whole.length, 1)
            self._first_apart(condition(whole.length > 0), once=once, trips=whole.length)
            yield whole.element(0)
            if self.finished:
                return
            self._first_is_over()
            left = at_least_zero(whole.length - 1)
            self.iterable = StagedIterable(left, lambda i: whole.element(i + 1), whole.what)
        if not started:
            self.before = self._environment()
        self._stage(None, self.iterable.length)
        while True:
            assert self.stage is not None
            yield self.iterable.at(self.stage.counter)
            if not self._iteration_ends(True):
                return

    def body_starts(self) -> None:
        """A body with jumps is entered; a native one is tried, since a jump may turn out to be staged."""
        if self.phase == "native":
            self.values = None
        if self.phase == "native" and self.restartable and self.capture.depth == self.depth:
            self.before = self._environment()
            self.speculation = self.capture.push(f"iteration_{self.location.line}", certain=True)

    def body_ends(self, jumped: Flow | None) -> bool:
        """The body is left, by a staged jump or otherwise; True if the jump has been dealt with."""
        if self.phase == "staged":
            base = self.depth + 1
            if jumped is None and self.capture.depth == base:
                return False
            if jumped is None and not self._continues_above(base):
                # Only breaks and returns: the test of the loop belongs to the arm that goes on.
                return False
            flow = close_to(self.capture, base, jumped or Flow(self._environment()), self.all_names)
            flow.flags.pop(("continue", self), None)
            self.flow = flow
            self.values = flow.env
            return True
        if self.speculation is not None:
            return self._speculation_ends(jumped)
        return self._native_body_ends(jumped)

    def _speculation_ends(self, jumped: Flow | None) -> bool:
        self.speculation = None
        base = self.depth + 1
        if self.capture.depth == base:
            self.capture.commit()
            return self._native_body_ends(jumped)
        keys = self.capture.pending_jumps(base) | set(jumped.flags if jumped else ())
        if keys <= {("continue", self), RAISES}:
            flow = close_to(self.capture, base, jumped or Flow(self._environment()), self.all_names)
            self.capture.commit()
            self.values = flow.env
            if flow.raised:
                raise StagedJump(flow)
            return True
        # A break or return depends on a tensor: the loop's header undoes this iteration, and stages the loop from here
        # on. Until then nothing that runs counts, but it may ask for what the iteration has made.
        self.phase = "restart"
        self.capture.push("discarded")
        return True

    def _native_body_ends(self, jumped: Flow | None) -> bool:
        if jumped is None and (self.capture.depth == self.depth or not self._continues_above(self.depth)):
            return False
        continues = self._continues_above(self.depth) or (jumped is not None and ("continue", self) in jumped.flags)
        leaves = jumped is not None and not jumped.falls and not continues
        flow = close_to(self.capture, self.depth, jumped or Flow(self._environment()), self.all_names)
        flow.flags.pop(("continue", self), None)
        if self.whole is not None and leaves:
            # Where the loop is not left before its first iteration, that leaves it.
            self.finished = True
            self.values = flow.env
            flow.flags.pop(("stop", self), None)
            self._leave(flow)
            return True
        self._leave(flow, ends=True)
        self.values = flow.env
        return True

    def _leave(self, flow: Flow, *, ends: bool = False) -> None:
        """After a native loop, or an iteration of it: breaks end here, other jumps go on."""
        own = ("break", self)
        if not ends:
            self.broke = either(self.broke, flow.flags.pop(own, False))
        elif flow.flags.get(own) is True:
            self.broke = self.finished = True
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

    # ---- staged iterations

    def _stage(self, go: Any, trips: Any) -> None:
        self.phase = "staged"
        self.stage = LoopState(self, go, trips)
        self.stage.begin()

    def _iteration_ends(self, go: Any) -> bool:
        """The end of a traced iteration; True to trace the body once more."""
        stage = self.stage
        assert stage is not None
        if stage.scope.failure is not None:
            return self._never_runs(stage, stage.scope.failure)
        flow = self.flow if self.flow is not None else Flow(self._environment())
        self.flow = None
        if flow.raised:
            raise RaiseError(
                "every iteration of this loop raises an exception",
                hint="raise under a condition that some input does not meet",
                location=self.location,
            )
        self.values = None
        if flow.falls:
            flow = Flow({**flow.env, "go": go}, flow.flags, {})
        else:
            flow = Flow({**flow.env, "go": False}, flow.flags, {})
        if self.capture.depth > self.depth + 1:
            flow = self._close_with_go(flow)
        jumped: Any = False
        for key in list(flow.flags):
            if key != ("continue", self):
                jumped = either(jumped, flow.flags[key])
        flow.flags.pop(("continue", self), None)
        go_on = flow.env.pop("go", go)
        go_on = go_on.tensor if isinstance(go_on, Number) else go_on
        flow.env["go"] = both(go_on, negated(jumped))
        with OBJECTS.made_here(stage.scope.born):
            if not stage.end(flow):
                return True
            self.values, flags = LoopEmission(stage).run()
        if go is True and stage.go is None and stage.trips is None and len(flags) == 1:
            # Only that jump leaves a ``while True``.
            flags = dict.fromkeys(flags, True)
        trips = stage.trips if stage.go is None else None
        left = self.iterable is not None and bool(flags)
        once, trips = self.whole or (stage.runs_once, trips)
        many = not flags and isinstance(trips, torch.SymInt) and at_least(trips, 2)
        fewest = 2 if many else int(once)
        self.capture.sites.loop(self.location, fewest=fewest, trips=trips, jumps=self.jumps, left=left)
        self._done(flags)
        return False

    def _done(self, flags: dict[Any, Any]) -> None:
        """The loop has been emitted, or left out."""
        self.phase = "done"
        self.stage, self.before = None, {}
        rest = Flow({**self._environment(), **(self.values or {})}, flags)
        if self.arms:
            rest = close_to(self.capture, self.depth - self.arms, rest, self.all_names)
            rest.flags.pop(("stop", self), None)
            self.values = rest.env
        self.broke = rest.flags.pop(("break", self), False)
        self._jump_on(rest)

    def _never_runs(self, stage: LoopState, failure: Failure) -> bool:
        """Each iteration fails: eager raises, unless there is none."""
        self.capture.abandon(self.depth)
        runs = stage.go if stage.go is not None else condition(stage.trips > 0)
        self.capture.guards.require(negated(runs), failure.location, always=True)
        self.values = {name: self.before.get(name, UNSET) for name in self.all_names}
        self._done({})
        return False

    def _close_with_go(self, flow: Flow) -> Flow:
        """Close the pending branches of an iteration; an arm that jumped away has nothing to say about going on."""
        flow.env["go"] = truth_number(flow.env["go"])
        for scope in self.capture.trace_frames[self.depth + 1 :]:
            if scope.pending is not None:
                scope.pending.flow.env.setdefault("go", False)
        names = (*self.all_names, "go")
        all_names, self.all_names = self.all_names, names
        try:
            return close_to(self.capture, self.depth + 1, flow, names)
        finally:
            self.all_names = all_names

    def _jump(self, kind: str) -> None:
        own = self.depth + (1 if self.speculation is not None else 0)
        if self.phase == "native" and self.capture.depth == own:
            if kind == "break":
                self.broke = True
            return
        key = (kind, self)
        raise StagedJump(Flow(self._environment(), {key: True}))

    # ---- variables

    def _environment(self) -> dict[Any, Any]:
        env = snapshot(self.frame)
        for name in self.all_names:
            if name not in env:
                env[name] = look_up(env, name, self.frame)
        if self.phase == "native" and self.values is not None:
            # The end of an iteration with jumps: the frame has the targets of the path that was traced last.
            env.update((n, self.values[n]) for n in self.targets if n in self.values)
        return env

    def _current(self, names: tuple[str, ...]) -> tuple[Any, ...]:
        env = self._environment()
        return tuple(self._usable(n, env.get(n, UNSET)) for n in names)

    def _usable(self, name: str, value: Any) -> Any:
        if value is not UNSET:
            return value
        return Undefined(
            name,
            "it has no value if the loop does not run",
            f"give {name!r} a value before the loop at line {self.location.line}",
            self.location,
        )
