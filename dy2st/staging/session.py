"""A running capture: the stack of open trace frames, and what is known in them.

Everything that stages is written against ``Session``. What has to know all constructs (which callee is converted, what
stands for a store's object) is abstract here and answered by ``dy2st.capture.capturing``, so that imports run one way.
"""

from __future__ import annotations

import abc
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from dy2st.errors import JumpError, LeakedValueError, Location
from dy2st.operators.export_session import current
from dy2st.source.user_frames import frames, location_of, users_frame
from dy2st.staging.arm_facts import ArmFacts
from dy2st.staging.excluded_sizes import SizeBranches
from dy2st.staging.flow import Flow, returning
from dy2st.staging.iterator_positions import Advances
from dy2st.staging.known_constants import KnownConstants
from dy2st.staging.memory.aliases import Aliases
from dy2st.staging.memory.heap_snapshot import UnchangedBuffers
from dy2st.staging.memory.shared_inputs import SharedInputs
from dy2st.staging.memory.sharing import StandIns
from dy2st.staging.sites import Sites
from dy2st.staging.trace_frame import CatchingStatement, Failure, Pending, TraceFrame, Watch
from dy2st.staging.visibility import in_use
from dy2st.tracing.guards import Guards
from dy2st.tracing.subgraph import Subgraph, storage_of
from dy2st.tracing.tracer import Tracing
from dy2st.values.container_structure import changeable
from dy2st.values.describing import article
from dy2st.values.error_recovery import RecoveryValue
from dy2st.values.journal import CONTAINERS, Journal, Slot
from dy2st.values.number import Number
from dy2st.values.tagged_union import TaggedUnion, cases_of, implied
from dy2st.values.tested_numbers import least_values
from dy2st.values.undefined import UNSET


class Session(abc.ABC):
    """The state of one capture; ``trace_frames`` are its open subgraphs, the program's own first."""

    # What stands for functions of Python and its library.
    overloads: dict[Any, Callable[..., Any]]

    def __init__(self) -> None:
        self.tracing = Tracing()
        self.trace_frames: list[TraceFrame] = [TraceFrame(Subgraph.root(self.tracing))]
        # Frames that a jump under a tensor condition has left a with statement of.
        self.leaving: list[FrameType] = []
        self.comprehensions: list[Any] = []
        # The context managers that the user's code is in.
        self.managers: list[Any] = []
        self.aliases = Aliases(lambda: self.tracing.layer, self.outlives, self.in_use)
        self.shared_inputs = SharedInputs()
        self.guards = Guards(self.tracing)
        self.arm_facts = ArmFacts()
        self.size_branches = SizeBranches()
        self.constants = KnownConstants()
        self.watched: list[Watch] = []
        # What Python itself waits for: see the module ``implicit_exceptions``.
        self.implicit_exceptions: list[Watch] = []
        # Objects' classes and the attributes that were given to an object: see ``class_defaults``.
        self.class_defaults: list[tuple[type, str]] = []
        # Containers as the end of an arm has left them, each with the one that it stands for: see ``Ends``.
        self.copies: dict[int, tuple[Any, Any]] = {}
        # Containers that joins have built, each with those that it stands for.
        self.joined: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        # How many stores there were, by the identity of what was stored to.
        self.touches: Counter[int] = Counter()
        # Where each was first stored to, of those that no frame of the trace has made: code, instruction and line.
        self.stored: dict[Slot, tuple[CodeType, int, int]] = {}
        # The state that the loops were settled in when they were staged before, by site.
        self.templates: dict[Any, Any] = {}
        # Objects whose parts' classes are converted, and code whose globals' are.
        self.looked_through: dict[int, Any] = {}
        self.advances = Advances(self.trace_frames, self.comprehensions, self.convert_class)
        self.sites = Sites()
        # What a user should know of the results, and the dtype that each has for a lower one on some path.
        self.cautions: dict[str, torch.dtype | None] = {}
        self.seeded = False  # whether the model has seeded torch's random generator
        # Generator expressions of which a builtin takes all elements.
        self.collecting: list[Any] = []
        # Dicts and sets that the code has made, each with the place; lists in such that the code may have.
        self.made_at, self.handed = dict[int, tuple[Any, Any]](), dict[int, list[Any]]()
        # Called after each torch function: compares sizes that it has taken to be equal.
        self.compare_sizes: Callable[[], None] = lambda: None

    @abc.abstractmethod
    def call(self, function: Any) -> Any:
        """What to call in place of ``function``."""

    @abc.abstractmethod
    def target(self, owner: Any) -> Any:
        """What stands for the object of a store."""

    @abc.abstractmethod
    def collected(self, values: Any) -> Any:
        """The elements of a generator expression that a builtin consumes, as a list."""

    @abc.abstractmethod
    def convert_class(self, cls: type) -> None:
        """Convert what Python itself calls of a user's class, for as long as the capture runs."""

    @abc.abstractmethod
    def case_verdict(self, value: TaggedUnion, test: Callable[[Any], Any]) -> Any:
        """What ``test``, which gives a Python bool or staged bool for each case, says of ``value``."""

    def new(self, owner: Any) -> Any:
        """An object that was made just now: changes of it are nobody else's business."""
        self.trace_frames[-1].born[id(owner)] = owner
        return owner

    def touch_content(self, owner: Any) -> None:
        """A change of a container's content follows; other objects are no business of the journal."""
        if isinstance(owner, CONTAINERS):
            self.touch(Slot.of("content", owner))

    def refuse_change(self, owner: Any, what: str) -> None:
        """Nothing that the journal does not see may change under a condition, save what was made under it."""
        if self.depth > 1 and not self.trace_frames[-1].owns(id(owner)):
            raise LeakedValueError(
                f"{article(type(owner).__name__)} is changed by {what} under a tensor condition or in a staged loop, "
                "unseen by dy2st",
                hint="let converted code change a list, a dict, an attribute or a tensor instead, or change it outside",
            )

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
        """Whether what is traced now runs under a data-dependent condition."""
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
        if scope is None or not self.leaves(error) or not (scope.arm or scope.pending is not None):
            raise error
        if scope.failure is None:
            scope.failure = Failure(error, location_of(users_frame()))
        return RecoveryValue()

    def push(self, label: str, *, certain: bool = False, arm: bool = False) -> TraceFrame:
        """Open a subgraph inside the innermost one and trace into it."""
        scope = TraceFrame(Subgraph.open(self.tracing, self.subgraph, label), certain=certain, arm=arm)
        scope.buffers = UnchangedBuffers(users_frame().f_locals.values())
        scope.sites = len(self.sites.found)
        self.trace_frames.append(scope)
        scope.subgraph.enter()
        return scope

    def pop(self) -> TraceFrame:
        """Close the innermost subgraph; trace into the one around it."""
        if self.trace_frames[-1].merged is None:
            for value in self.trace_frames[-1].buffers.changed():
                self.refuse_change(value, "an assignment in place")
        scope = self.trace_frames.pop()
        scope.older = None
        self.trace_frames[-1].born.update(scope.born)
        self.trace_frames[-1].stand_ins.update(scope.stand_ins)
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
            found = implied(node, value)
            found |= self.arm_facts.following(found)
            if scope is not self.trace_frames[0]:
                for fact in self.arm_facts.sizes(found):
                    self.tracing.assume(fact)
            scope.known.update(found)
            scope.least.update(least_values(node, value))

    def say_bounds(self, tensor: torch.Tensor, symbol: Any) -> None:
        """Say of a symbol that stands for the int in a tensor what the tests on the way to here say of that."""
        node = self.tracing.node_of(tensor)
        known = [scope.least[node] for scope in self.trace_frames if node in scope.least]
        if known:
            self.tracing.assume(symbol >= max(known))

    def in_use(self, containers: Sequence[Any]) -> bool:
        """Whether the user's code can still get at one of some containers; at all that it has not made, it can."""
        return not all(map(self.made_here, containers)) or in_use(containers, users_frame(), self.managers)

    def made_here(self, container: Any) -> bool:
        """Whether a container or object was made under the capture, in a subgraph that is open or as a stand-in."""
        return id(container) in self.joined or any(id(container) in scope.born for scope in self.trace_frames)

    def touch(self, slot: Slot) -> None:
        """A store to ``slot`` follows."""
        self.touches[slot.identity] += 1
        if slot.kind == "attribute":
            for place, lost in self.aliases.change_attribute(slot, made_here=self.made_here):
                self.store(place, lost)
        else:
            self.aliases.check_change(slot.owner)
        self.check_leaving()
        if not self.trace_frames[-1].owns(slot.identity):
            self.trace_frames[-1].journal.touch(slot)
            if slot not in self.stored:
                frame = users_frame()
                self.stored[slot] = frame.f_code, frame.f_lasti, frame.f_lineno

    def check_leaving(self) -> None:
        """A context manager's exit that stores something belongs to all paths, also to one that has jumped away."""
        if not self.leaving:
            return
        exits = False
        for frame in frames(sys._getframe(1)):
            exits = exits or frame.f_code.co_name == "__exit__"
            if frame in self.leaving:
                if exits:
                    raise JumpError(
                        "a jump under a tensor condition leaves a with statement whose exit changes something",
                        hint="move the break, continue or return behind the with statement",
                        location=location_of(frame),
                    )
                return

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
            if slot not in self.stored:
                frame = users_frame()
                self.stored[slot] = frame.f_code, frame.f_lasti, frame.f_lineno
        try:
            slot.set(value)
        except TypeError as error:
            raise LeakedValueError(
                f"{article(type(slot.owner).__name__)} is changed under a tensor condition or in a staged loop, and "
                f"takes no data-dependent value: {error}",
                hint="keep the value in a variable, or in an attribute of an object of your own",
            ) from error

    def abandon(self, depth: int) -> None:
        """Drop subgraphs down to ``depth``, undoing what they stored."""
        if self.depth > depth:
            self.sites.forget(self.trace_frames[depth].sites)
        while self.depth > depth:
            self.trace_frames[-1].journal.take()
            self.pop().subgraph.forget_sizes()

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

    def outlives(self, storage: int) -> bool:
        """Whether somebody else reads a tensor with this storage: an input, a parameter, a buffer or a constant."""
        return self.shared_inputs.holds(storage) or any(
            node.op == "get_attr" and storage_of(node) == storage
            for layer in (self.tracing.layer, *self.tracing.layer.ancestors())
            for node in layer.graph.nodes
        )

    def original(self, value: Any) -> Any:
        """The container itself, for one that shows what the end of an arm has made of it."""
        return self.copies[id(value)][1] if id(value) in self.copies else value

    def stand_in(
        self, known: StandIns, built: Any, sides: tuple[Any, ...], born: frozenset[int], key: Any = None
    ) -> Any:
        """What stands for ``sides``: ``built``, or what was made for the same ones before."""

        def note() -> None:
            self.joined[id(built)] = built, sides
            self.trace_frames[-1].stand_ins[id(built)] = built
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
        self.aliases.may_be_one(*containers)

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

    def may_catch(self, kind: type[Exception]) -> bool:
        """Whether a ``try`` statement that is running, or Python itself, may catch exceptions of this type."""
        return any(watch.catches(kind) for watch in (*self.watched, *self.implicit_exceptions))

    def catching(self, error: Exception) -> CatchingStatement | None:
        """The ``try`` statement whose handlers take an exception on a staged path; None where that is not certain."""
        for watch in reversed(self.watched):
            if not watch.lets_pass(error):
                return watch.statement if watch.statement is not None and watch.statement.takes(error) else None
        return None

    def leaves(self, error: Exception) -> bool:
        """Whether an exception on a staged path certainly leaves the model."""
        return all(watch.lets_pass(error) for watch in (*self.watched, *self.implicit_exceptions))


class Mode:
    """Whether a capture runs."""

    __slots__ = ()

    @property
    def capture(self) -> Session | None:
        """The capture that runs in this thread: nothing else answers the operators."""
        return cast("Session | None", current().capture)


MODE = Mode()
