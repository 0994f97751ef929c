"""The stack of open subgraphs, and how two paths become one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from dy2st.calls.implicit_exceptions import waits_for
from dy2st.errors import (
    GeneratorError,
    JumpError,
    LeakedValueError,
    Location,
)
from dy2st.source.places import location_of
from dy2st.staging.branches.branch_end import BranchEnd
from dy2st.staging.cases import narrowed
from dy2st.staging.conditions import either, negated
from dy2st.staging.flow import FAILS, RAISES, Flow, returning
from dy2st.staging.frames import users_frame
from dy2st.staging.memory.aliases import Aliases, storage_key
from dy2st.staging.memory.sharing import StandIns, sharing
from dy2st.staging.memory.untracked_mutation import UnchangedBuffers
from dy2st.staging.trace_frame import Failure, Pending, TraceFrame, Watch
from dy2st.tracing.guards import Guards
from dy2st.tracing.subgraph import Subgraph
from dy2st.tracing.tracer import Tracing
from dy2st.values.container_structure import changeable
from dy2st.values.describing import article
from dy2st.values.error_recovery import RecoveryValue
from dy2st.values.journal import Journal, Slot
from dy2st.values.number import Number
from dy2st.values.tagged_union import TaggedUnion, cases_of, implied
from dy2st.values.undefined import UNSET


class Session:
    """The open subgraphs of a capture, the program's own first."""

    def __init__(self) -> None:
        self.tracing = Tracing()
        self.trace_frames: list[TraceFrame] = [TraceFrame(Subgraph.root(self.tracing))]
        # Frames that a jump under a tensor condition has left a with statement of.
        self.leaving: list[FrameType] = []
        self.comprehensions: list[Any] = []
        self.aliases = Aliases(self.tracing.live_tensors)
        self.guards = Guards(self.tracing)
        self.watched: list[Watch] = []
        # What Python itself waits for: see ``awaited``.
        self.awaited: list[Watch] = []
        # Objects' classes and the attributes that were given to an object: see ``class_defaults``.
        self.class_defaults: list[tuple[type, str]] = []
        # Containers as the end of an arm has left them, each with the one that it stands for: see ``Ends``.
        self.copies: dict[int, tuple[Any, Any]] = {}
        # Containers that joins have built, each with those that it stands for.
        self.joined: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        # How many stores there were.
        self.touches = 0

    @property
    def depth(self) -> int:
        """How many subgraphs are open."""
        return len(self.trace_frames)

    @property
    def subgraph(self) -> Subgraph:
        """The innermost open subgraph."""
        return self.trace_frames[-1].subgraph

    @property
    def conditional(self) -> bool:
        """Whether what is traced now runs under a condition that only the graph knows."""
        return any(not scope.certain for scope in self.trace_frames[1:])

    @property
    def recovering(self) -> bool:
        """Whether there may be muted values: what takes any value is to look for them."""
        return False

    @property
    def failing(self) -> Failure | None:
        """What eager raises on the path that is being traced: no value that is made here matters."""
        return next((scope.failure for scope in self.trace_frames if scope.failure is not None), None)

    def fail(self, error: Exception) -> RecoveryValue:
        """Eager raises ``error`` here: the arm of a tensor condition around ends with it; what to go on with.

        Raises ``error`` itself where no such arm is around, or where a ``try`` may catch it.
        """
        scope = next((scope for scope in reversed(self.trace_frames) if not scope.certain), None)
        caught = self.watched or waits_for(self.awaited, type(error))
        if scope is None or caught or not (scope.arm or scope.pending is not None):
            raise error
        if scope.failure is None:
            scope.failure = Failure(error, location_of(users_frame()))
        return RecoveryValue()

    def push(self, label: str, *, certain: bool = False, arm: bool = False) -> TraceFrame:
        """Open a subgraph inside the innermost one and trace into it."""
        scope = TraceFrame(Subgraph.open(self.tracing, self.subgraph, label), certain=certain, arm=arm)
        scope.buffers = UnchangedBuffers(users_frame().f_locals.values())
        self.trace_frames.append(scope)
        scope.subgraph.enter()
        return scope

    def pop(self) -> TraceFrame:
        """Close the innermost subgraph; trace into the one around it."""
        if self.trace_frames[-1].merged is None:
            self.trace_frames[-1].buffers.check(self, "an assignment in place")
        scope = self.trace_frames.pop()
        scope.older = None
        self.trace_frames[-1].born.update(scope.born)
        scope.subgraph.forget_sizes()
        self.subgraph.enter()
        return scope

    def learn(self, scope: TraceFrame, test: torch.Tensor, *, value: bool) -> None:
        """What runs in ``scope`` runs only if ``test`` is ``value``: what that says of tags, and of sizes."""
        if scope is not self.trace_frames[0]:
            for fact in self.tracing.said_by(test, value=value):
                self.tracing.assume(fact)
        node = self.tracing.node_of(test)
        if node is not None:
            scope.known.update(implied(node, value))

    def touch(self, slot: Slot) -> None:
        """A store to ``slot`` follows."""
        self.touches += 1
        self.aliases.check_change(slot.owner)
        self.check_leaving()
        if not self.trace_frames[-1].owns(slot.identity):
            self.trace_frames[-1].journal.touch(slot)

    def check_leaving(self) -> None:
        """A context manager's exit that stores something belongs to all paths, also to one that has jumped away."""
        if not self.leaving:
            return
        frame: FrameType | None = sys._getframe(2)
        exits = False
        while frame is not None:
            exits = exits or frame.f_code.co_name == "__exit__"
            if frame in self.leaving:
                if exits:
                    raise JumpError(
                        "a jump under a tensor condition leaves a with statement whose exit changes something",
                        hint="move the break, continue or return behind the with statement",
                        location=location_of(frame),
                    )
                return
            frame = frame.f_back

    def present(self, value: Any) -> Any:
        """The value that a variable has, or UNSET: what a closed subgraph has left in it is read by nobody."""
        parts = pytree.tree_leaves(value)
        parts += [
            leaf for part in parts if isinstance(part, TaggedUnion) for leaf in pytree.tree_leaves(cases_of(part))
        ]
        tensors = [part.tensor if isinstance(part, Number) else part for part in parts]
        gone = (isinstance(t, FakeTensor) and self.tracing.node_of(t) is None for t in tensors)
        return UNSET if any(gone) else value

    def store(self, slot: Slot, value: Any) -> None:
        """A store of ours: journalled and made."""
        if not self.trace_frames[-1].owns(slot.identity):
            self.trace_frames[-1].journal.touch(slot)
        try:
            slot.set(value)
        except TypeError as error:
            raise LeakedValueError(
                f"{article(type(slot.owner).__name__)} is changed under a tensor condition or in a staged loop, and "
                f"takes no value that only the graph knows: {error}",
                hint="keep the value in a variable, or in an attribute of an object of your own",
            ) from error

    def abandon(self, depth: int) -> None:
        """Drop subgraphs down to ``depth``, undoing what they stored."""
        while self.depth > depth:
            self.trace_frames[-1].journal.take()
            self.pop().subgraph.forget_sizes()

    def merge(
        self,
        test: torch.Tensor,
        arms: tuple[Subgraph, Subgraph],
        flows: tuple[Flow, Flow],
        fall_names: tuple[str, ...],
        location: Location,
    ) -> Flow:
        """End a branch: emit it in the innermost subgraph, and return the joined flow."""
        if any(flow.raised for flow in flows):
            return self.guard(test, arms, flows)
        return BranchEnd(self, test, arms, flows, location).joined(fall_names)

    def guard(self, test: torch.Tensor, arms: tuple[Subgraph, Subgraph], flows: tuple[Flow, Flow]) -> Flow:
        """End a branch one arm of which raises: a guard, and the other arm as part of the innermost subgraph."""
        a, b = flows
        if a.raised and b.raised:
            return a
        goes_on, arm, raised = (b, arms[1], a) if a.raised else (a, arms[0], b)
        # No option drops what is no raise statement of the user's.
        implicit = FAILS in raised.flags
        self.guards.require(negated(test) if a.raised else test, raised.env[RAISES], always=implicit)
        self.adopt(arm)
        self.learn(self.trace_frames[-1], test, value=goes_on is a)
        for slot, value in goes_on.stores.items():
            self.store(slot, value)
        return Flow(goes_on.env, goes_on.flags)

    def commit(self) -> None:
        """Keep what was tried in the innermost subgraph: it becomes a part of the one around it."""
        scope, around = self.trace_frames[-1], self.trace_frames[-2]
        scope.merged = around
        around.cached.update(scope.cached)
        for slot, old in scope.journal.old.items():
            if not around.owns(slot.identity):
                around.journal.old.setdefault(slot, old)
        self.pop()
        self.adopt(scope.subgraph)

    def pending_jumps(self, depth: int) -> set[Any]:
        """The jumps of paths that have left the code that is traced now, in the subgraphs from ``depth`` on."""
        return {key for s in self.trace_frames[depth:] if s.pending is not None for key in s.pending.flow.flags}

    def adopt(self, subgraph: Subgraph) -> None:
        """Make a finished subgraph a part of the innermost one."""
        self.tracing.splice(subgraph.layer)
        self.subgraph.modules.update(subgraph.modules)

    def note_sharing(self, results: Sequence[torch.Tensor], *sides: Sequence[Any]) -> None:
        """Results may share memory where the values of one side do, in the same order."""
        for values in sides:
            for i, j in sharing(self.aliases, values):
                if results[i] is not results[j]:
                    self.aliases.may_be(results[i], results[j])

    def note_tensor(self, result: torch.Tensor, side: Any, own: set[int]) -> None:
        """A result may be the same tensor as a side that was not made in its arm (whose storages are ``own``)."""
        if not isinstance(side, torch.Tensor):
            return
        for older in (side, *self.aliases.others(side)):
            if storage_key(older) not in own or storage_key(older) in self.aliases.remembered:
                self.aliases.may_be(result, older)

    def original(self, value: Any) -> Any:
        """The container itself, for one that shows what the end of an arm has made of it."""
        return self.copies[id(value)][1] if id(value) in self.copies else value

    def stand_in(
        self, known: StandIns, built: Any, sides: tuple[Any, ...], born: frozenset[int], key: Any = None
    ) -> Any:
        """What stands for ``sides``: ``built``, or what was made for the same ones before."""

        def note() -> None:
            self.joined[id(built)] = built, sides
            self.note_container(built, sides, born, key)

        return known.of(sides, built, note)

    def note_container(self, built: Any, sides: tuple[Any, ...], born: frozenset[int], key: Any = None) -> None:
        """A joined container stands for its sides: it may not be changed, unless they were made in the arms.

        What a function returns (``key``) does so from the function's end on: until then, only other paths go on.
        """
        if not changeable(built):
            return
        sides = tuple(self.original(side) for side in sides if side is not UNSET)
        function = returning(key)
        if all(id(side) in born for side in sides):
            self.trace_frames[-1].born[id(built)] = built
            return
        older = [side for side in sides if id(side) not in born]
        if function is not None:
            function.returned.append((built, older))
        else:
            self.may_be_older(built, *older)

    def may_be_older(self, *containers: Any) -> None:
        """These may be one, on some path."""
        for each in containers:
            self.aliases.object_may_be_older(each)

    def leave_pending(
        self,
        test: torch.Tensor,
        done: Subgraph,
        flow: Flow,
        open_region: Subgraph,
        journal: Journal,
        then: bool,
        where: Location,
    ) -> None:
        """The code that follows runs in ``open_region``; ``done`` has jumped away with ``flow``."""
        scope = TraceFrame(open_region, journal, Pending(test, done, flow, then, where))
        self.learn(scope, test, value=not then)
        self.trace_frames.append(scope)
        open_region.enter()

    def close_pending(self, flow: Flow, fall_names: tuple[str, ...]) -> Flow:
        """End the innermost pending branch, whose open arm ends with ``flow``."""
        scope = self.trace_frames[-1]
        pending = scope.pending
        if pending is None:
            raise GeneratorError(
                "a generator expression over a tensor is consumed by code that dy2st does not convert",
                hint="make it a list, or write it as a for loop",
                location=self.comprehensions[-1].location if self.comprehensions else None,
            )
        ended = self.ended(flow, scope)
        self.pop()
        arms, flows = (pending.done, scope.subgraph), (pending.flow, ended)
        if not pending.done_is_then:
            arms, flows = (arms[1], arms[0]), (flows[1], flows[0])
        return self.merge(pending.test, arms, flows, fall_names, pending.location)

    def ended(self, flow: Flow, scope: TraceFrame) -> Flow:
        """The end of the innermost subgraph: its stores are undone, and its values are those that they can be here."""
        stores = scope.journal.take()
        if scope.failure is not None and not flow.raised:
            flow = Flow({RAISES: scope.failure.location}, {RAISES: True, FAILS: True})
            stores = {}
        if scope.known:
            env = {name: self.narrowed_parts(value, scope) for name, value in flow.env.items()}
            stores = {slot: self.narrowed_store(slot, value, scope) for slot, value in stores.items()}
            flow = Flow(env, flow.flags)
        return Flow(flow.env, flow.flags, stores, frozenset(scope.born))

    def narrowed_parts(self, value: Any, scope: TraceFrame) -> Any:
        """A value as far as it is known here, and so what it is made of; containers are changed that were made here."""
        if isinstance(value, tuple):
            parts = [self.narrowed_parts(part, scope) for part in value]
            if all(part is old for part, old in zip(parts, value, strict=True)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if type(value) in (list, dict) and id(value) in scope.born:
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                value[key] = self.narrowed_parts(part, scope)
            return value
        return narrowed(self, value)

    def narrowed_store(self, slot: Slot, value: Any, scope: TraceFrame) -> Any:
        """A stored value as far as it is known here; the same for the values of a container."""
        if slot.kind != "content":
            return self.narrowed_parts(value, scope)
        if isinstance(value, dict):
            found = {key: narrowed(self, v) for key, v in value.items()}
            return type(value)({key: v for key, v in found.items() if v is not UNSET})
        return type(value)(narrowed(self, v) for v in value)

    def may_catch(self, kind: type[Exception]) -> bool:
        """Whether a ``try`` statement that is running, or Python itself, may catch exceptions of this type."""
        return waits_for([*self.watched, *self.awaited], kind)

    def close_to(self, depth: int, flow: Flow, fall_names: tuple[str, ...] = ()) -> Flow:
        """End the pending branches above ``depth``."""
        while self.depth > depth:
            flow = self.close_pending(flow, fall_names)
        return flow

    def guard_rest(self, flow: Flow, location: Location) -> None:
        """After a join from which control may have jumped away: the code that follows runs only if it has not."""
        jumped: Any = False
        for flag in flow.flags.values():
            jumped = either(jumped, flag)
        flags = dict.fromkeys(flow.flags, True) if len(flow.flags) == 1 else dict(flow.flags)
        test = jumped
        done = Subgraph.open(self.tracing, self.subgraph, f"exit_{location.line}")
        rest = Subgraph.open(self.tracing, self.subgraph, f"rest_{location.line}")
        self.leave_pending(test, done, Flow(dict(flow.env), flags), rest, Journal(), True, location)
