"""A running capture: the stack of open regions, and how two paths become one."""

from __future__ import annotations

import contextlib
import dataclasses
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from dy2st.errors import (
    BufferKindError,
    CaughtError,
    ComprehensionError,
    DataError,
    GeneratorError,
    IdentityError,
    JumpError,
    LeakedValueError,
    Location,
    SeedError,
    TrainingNormError,
)
from dy2st.graph.aliases import Aliases, storage_key
from dy2st.graph.describing import describe, shown
from dy2st.graph.emit import Effects, emit_branch, fresh_copy
from dy2st.graph.grad_mode import GRADIENTS
from dy2st.graph.gradients import stop_gradients
from dy2st.graph.guards import Guards
from dy2st.graph.join import Join, Leaf, Lost, join, join_content, leaf_tensor, leaves, rebuild
from dy2st.graph.journal import CONTAINERS, Journal, Slot
from dy2st.graph.numbers import Number, number_kind
from dy2st.graph.one_of import MADE, OneOf, implied
from dy2st.graph.paths import stored_at
from dy2st.graph.poison import UNSET, Poison
from dy2st.graph.region import Region, alias_chain, leaked, storage_of, training_norm, written_inputs
from dy2st.graph.rows import Rows
from dy2st.graph.texts import UNKNOWN, text, watched_texts
from dy2st.graph.tracing import Tracing
from dy2st.operators.builtins_on_tensors import is_staged, stand_ins
from dy2st.operators.cases import narrowed
from dy2st.operators.conditions import condition, either, negated, truth_number
from dy2st.operators.flow import RAISES, Flow
from dy2st.operators.iterators import Advances
from dy2st.operators.mode import MODE
from dy2st.operators.naming import changed
from dy2st.operators.sites import Sites
from dy2st.operators.uneven import Side, resolved

# The types of values that stand for others.
OUR_CLASSES = (Number, OneOf, Poison, Rows, torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass
class Scope:
    """An open region with its journal; ``pending`` is set when the code after a branch goes on in one of its arms."""

    region: Region
    journal: Journal = field(default_factory=Journal)
    pending: Pending | None = None
    # Objects made while this region was the innermost one, by identity: changes of them are nobody else's business.
    born: dict[int, Any] = field(default_factory=dict)
    # The scope that this one, a tried iteration, has become part of.
    merged: Scope | None = None
    # Every object that there was when the region was opened, where that has to be known.
    older: dict[int, Any] | None = None
    # What is traced here runs in any case: an iteration of a native loop, tried out.
    certain: bool = False
    # What the tests on the way to here say of tags: (tag, case) pairs that hold, or don't.
    known: dict[tuple[fx.Node, int], bool] = field(default_factory=dict)

    def owns(self, identity: int) -> bool:
        """Whether an object was made in this region."""
        return identity in self.born or (self.older is not None and identity not in self.older)


@dataclass
class Pending:
    """A branch one arm of which has jumped away; the code that follows runs in the other one."""

    test: torch.Tensor
    done: Region
    flow: Flow
    done_is_then: bool
    location: Location


def location_of(frame: FrameType) -> Location:
    """The line that a user's frame is at."""
    code = frame.f_code
    column = None
    positions = list(code.co_positions())
    if 0 <= frame.f_lasti // 2 < len(positions):
        column = positions[frame.f_lasti // 2][2]
    text = linecache.getline(code.co_filename, frame.f_lineno).rstrip("\n") or None
    return Location(code.co_filename, frame.f_lineno, column, text)


def snapshot(frame: FrameType) -> dict[Any, Any]:
    """The variables of a frame: locals, and globals behind them for names declared global."""
    return dict(frame.f_locals)


def look_up(env: dict[Any, Any], name: Any, frame: FrameType | None = None) -> Any:
    """A variable's value in a snapshot, or UNSET."""
    if name in env:
        return env[name]
    if frame is not None and isinstance(name, str) and name not in frame.f_code.co_varnames:
        return frame.f_globals.get(name, UNSET)
    return UNSET


class Capture:
    """The state of one capture."""

    def __init__(self) -> None:
        self.tracing = Tracing()
        self.scopes: list[Scope] = [Scope(Region.root(self.tracing))]
        self.templates: dict[Any, Any] = {}
        # Classes whose properties and special methods are converted while the capture runs, with the originals.
        self.classes: dict[type, dict[str, Any]] = {}
        self.comprehensions: list[Any] = []
        # Frames that a jump under a tensor condition has left a with statement of.
        self.leaving: list[FrameType] = []
        self.aliases = Aliases()
        self.advances = Advances(self)
        self.sites = Sites()
        self.guards = Guards(self.tracing)
        # Whether the model has seeded torch's random generator.
        self.seeded = False
        # For each ``try`` statement whose body is running: how many regions were open at its start.
        self.watched: list[int] = []
        # How many stores there were.
        self.touches = 0
        # Generator expressions of which a builtin takes all elements.
        self.collecting: list[Any] = []
        # Called after each torch function: compares sizes that it has taken to be equal.
        self.compare_sizes: Callable[[], None] = lambda: None
        self.stand_ins = stand_ins()
        self.tracing.check = self.check_node

    def check_node(self, node: fx.Node) -> None:
        """A node has been made: refuse it if the graph would say something else than eager."""
        if node.op != "call_function" or self.tracing.place:
            return
        for target in written_inputs(node):
            if alias_chain(target)[-1].op == "get_attr":
                raise DataError(
                    "a tensor that belongs neither to the call nor to the module's buffers is changed in place",
                    hint="register_buffer() it, or pass it in: a program has nowhere else to keep it",
                )
            storage = storage_of(target)
            if storage is not None:
                self.aliases.check_write(storage)
        if self.seeded and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise SeedError(
                "random numbers are drawn after the generator is seeded inside the model; a graph has no generator",
                hint="seed before the model is called, or draw the random numbers outside and pass them in",
            )
        if leaked(node, self.tracing):
            raise LeakedValueError(
                "a tensor made under a tensor condition or in a staged loop is used after it, stored unseen by dy2st",
                hint="let converted code store it, in a variable, an attribute or a container",
            )
        if self.depth > 1 and training_norm(node):
            raise TrainingNormError(
                "a normalisation in training mode under a tensor condition or in a staged loop",
                hint="call eval() on the module, or normalise outside",
            )

    def convert_class(self, cls: type) -> None:
        """Convert what Python itself calls of a user's class (properties, operators) until the capture ends."""
        from dy2st.operators.following import OWN_PACKAGES, converted_members

        for base in cls.__mro__:
            if base in self.classes or base.__module__.split(".")[0] in (*OWN_PACKAGES, "builtins", "collections"):
                continue
            members = converted_members(base)
            self.classes[base] = {name: vars(base)[name] for name in members}
            for name, member in members.items():
                setattr(base, name, member)

    def restore_classes(self) -> None:
        """Undo ``convert_class``."""
        for cls, members in self.classes.items():
            for name, member in members.items():
                setattr(cls, name, member)

    # ---- regions

    @property
    def depth(self) -> int:
        """How many regions are open."""
        return len(self.scopes)

    @property
    def region(self) -> Region:
        """The innermost open region."""
        return self.scopes[-1].region

    @property
    def conditional(self) -> bool:
        """Whether what is traced now runs under a condition that only the graph knows."""
        return any(not scope.certain for scope in self.scopes[1:])

    def push(self, label: str, *, certain: bool = False) -> Scope:
        """Open a region inside the innermost one and trace into it."""
        scope = Scope(Region.open(self.tracing, self.region, label), certain=certain)
        self.scopes.append(scope)
        scope.region.enter()
        return scope

    def pop(self) -> Scope:
        """Close the innermost region; trace into the one around it."""
        scope = self.scopes.pop()
        self.scopes[-1].born.update(scope.born)
        scope.region.forget_sizes()
        self.region.enter()
        return scope

    def new(self, owner: Any) -> Any:
        """An object that was made just now."""
        if MADE.any and isinstance(owner, dict):
            from dy2st.operators.dicts import all_there

            all_there(self, owner)
        self.scopes[-1].born[id(owner)] = owner
        return owner

    def displayed(self, owner: Any) -> Any:
        """What a display or comprehension has made."""
        if self._comprehension_open():
            from dy2st.operators.comprehension import finished

            owner = finished(self, owner, sys._getframe(2))
        return self.new(owner)

    def learn(self, scope: Scope, test: torch.Tensor, *, value: bool) -> None:
        """What runs in ``scope`` runs only if ``test`` is ``value``: what that says of tags, and of sizes."""
        if scope is not self.scopes[0]:
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
        if not self.scopes[-1].owns(slot.identity):
            self.scopes[-1].journal.touch(slot)

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

    def store(self, slot: Slot, value: Any) -> None:
        """A store of ours: journalled and made."""
        if not self.scopes[-1].owns(slot.identity):
            self.scopes[-1].journal.touch(slot)
        slot.set(value)

    def abandon(self, depth: int) -> None:
        """Drop regions down to ``depth``, undoing what they stored."""
        while self.depth > depth:
            self.scopes[-1].journal.take()
            self.pop().region.forget_sizes()

    # ---- joining

    def merge(
        self,
        test: torch.Tensor,
        arms: tuple[Region, Region],
        flows: tuple[Flow, Flow],
        fall_names: tuple[str, ...],
        location: Location,
    ) -> Flow:
        """End a branch: emit it in the innermost region, and return the joined flow."""
        a, b = flows
        if a.raised or b.raised:
            return self.guard(test, arms, flows)
        need_a, need_b = a.needed(fall_names), b.needed(fall_names)
        names = sorted(need_a | need_b, key=str)
        sides = Side(arms[0].layer, a.stores), Side(arms[1].layer, b.stores)
        first = min(arm.layer.first_symbol for arm in arms)
        joins: list[Join] = [
            resolved(self, join(a.env.get(n, UNSET), b.env.get(n, UNSET), n in need_a, n in need_b), sides, first)
            for n in names
        ]
        slots = list(dict.fromkeys([*a.stores, *b.stores]))
        for slot in slots:
            old = slot.get()
            together = join_content if slot.kind == "content" else join
            joined = resolved(self, together(a.stores.get(slot, old), b.stores.get(slot, old)), sides, first)
            if isinstance(joined, Lost) and slot.kind == "content":
                raise changed(slot, joined, "under a tensor condition", location)
            joins.append(joined)
        keys = list(dict.fromkeys([*a.flags, *b.flags]))
        for key in keys:
            x, y = a.flags.get(key, False), b.flags.get(key, False)
            joins.append(
                join(x, y) if isinstance(x, bool) and isinstance(y, bool) and x == y else Leaf(x, y, torch.bool, None)
            )
        values = self.emit(test, arms, joins, location)
        made = [
            rebuild(
                j,
                lambda leaf: values[id(leaf)],
                shown(n),
                location,
                lambda built, sides: self.note_container(built, sides, a.born | b.born),
            )
            for j, n in zip(joins, [*names, *slots, *keys], strict=True)
        ]
        env = dict(zip(names, made, strict=False))
        for slot, value in zip(slots, made[len(names) :], strict=False):
            self.store(slot, value)
        raised = zip(keys, made[len(names) + len(slots) :], strict=True)
        return Flow(env, {key: value for key, value in raised if value is not False})

    def guard(self, test: torch.Tensor, arms: tuple[Region, Region], flows: tuple[Flow, Flow]) -> Flow:
        """End a branch one arm of which raises: a guard, and the other arm as part of the innermost region."""
        a, b = flows
        if a.raised and b.raised:
            return a
        goes_on, arm, raised = (b, arms[1], a) if a.raised else (a, arms[0], b)
        self.guards.require(negated(test) if a.raised else test, raised.env[RAISES])
        self.adopt(arm)
        self.learn(self.scopes[-1], test, value=goes_on is a)
        for slot, value in goes_on.stores.items():
            self.store(slot, value)
        return Flow(goes_on.env, goes_on.flags)

    def adopt(self, region: Region) -> None:
        """Make a finished region a part of the innermost one."""
        self.tracing.splice(region.layer)
        self.region.modules.update(region.modules)

    @GRADIENTS.emitting()
    def emit(
        self, test: torch.Tensor, arms: tuple[Region, Region], joins: list[Join], location: Location
    ) -> dict[int, torch.Tensor]:
        """Emit the branch with one result for each leaf of ``joins``; the results by the leaves' identity."""
        found = [leaf for j in joins for leaf in leaves(j)]
        outputs: list[list[torch.Tensor]] = []
        for side, arm in zip("ab", arms, strict=True):
            with self.tracing.inside(arm.layer):
                outputs.append([self.side_value(leaf, side, arm.layer.first_symbol) for leaf in found])
        if not found and not Effects.of(arms).bases:
            return {}
        own = [arm.own_storages() for arm in arms]
        with self.tracing.at(location):
            results = emit_branch(self.tracing, self.region, test, arms, (outputs[0], outputs[1]))
        for leaf, value in zip(found, results, strict=True):
            for side, storages in zip((leaf.a, leaf.b), own, strict=True):
                self.note_tensor(value, side, storages)
        return {id(leaf): value for leaf, value in zip(found, results, strict=True)}

    def note_tensor(self, result: torch.Tensor, side: Any, own: set[int]) -> None:
        """A result may be the same tensor as a side that was not made in its arm (whose storages are ``own``)."""
        if isinstance(side, torch.Tensor) and storage_key(side) not in own:
            self.aliases.may_be(result, side)

    def note_container(self, built: Any, sides: tuple[Any, ...], born: frozenset[int]) -> None:
        """A joined container stands for its sides: it may not be changed, unless they were made in the arms."""
        changeable = isinstance(built, (list, dict)) or dataclasses.is_dataclass(built)
        if changeable and not all(id(side) in born for side in sides):
            self.aliases.object_may_be_older(built)
            for side in sides:
                if id(side) not in born and side is not UNSET:
                    self.aliases.object_may_be_older(side)

    def side_value(self, leaf: Leaf, side: str, first_symbol: int) -> torch.Tensor:
        """One side of a leaf as a tensor of its own; zeros where that side is not needed."""
        value, other = (leaf.a, leaf.b) if side == "a" else (leaf.b, leaf.a)
        if value is not UNSET:
            return fresh_copy(leaf_tensor(value, leaf))
        shape = other.shape if isinstance(other, torch.Tensor) else ()
        sizes = [0 if self.tracing.is_younger(s, first_symbol) else s for s in shape]
        return torch.zeros(sizes, dtype=leaf.dtype)

    # ---- pending branches

    def leave_pending(
        self,
        test: torch.Tensor,
        done: Region,
        flow: Flow,
        open_region: Region,
        journal: Journal,
        then: bool,
        where: Location,
    ) -> None:
        """The code that follows runs in ``open_region``; ``done`` has jumped away with ``flow``."""
        scope = Scope(open_region, journal, Pending(test, done, flow, then, where))
        self.learn(scope, test, value=not then)
        self.scopes.append(scope)
        open_region.enter()

    def close_pending(self, flow: Flow, fall_names: tuple[str, ...]) -> Flow:
        """End the innermost pending branch, whose open arm ends with ``flow``."""
        scope = self.scopes[-1]
        pending = scope.pending
        if pending is None:
            raise GeneratorError(
                "a generator expression over a tensor is consumed by code that dy2st does not convert",
                hint="make it a list, or write it as a for loop",
                location=self.comprehensions[-1].location if self.comprehensions else None,
            )
        ended = self.ended(flow, scope)
        self.pop()
        arms, flows = (pending.done, scope.region), (pending.flow, ended)
        if not pending.done_is_then:
            arms, flows = (arms[1], arms[0]), (flows[1], flows[0])
        return self.merge(pending.test, arms, flows, fall_names, pending.location)

    def ended(self, flow: Flow, scope: Scope) -> Flow:
        """The end of the innermost region: its stores are undone, and its values are those that they can be here."""
        stores = scope.journal.take()
        if scope.known:
            env = {name: narrowed(self, value) for name, value in flow.env.items()}
            stores = {slot: self.narrowed_store(slot, value) for slot, value in stores.items()}
            flow = Flow(env, flow.flags)
        return Flow(flow.env, flow.flags, stores, frozenset(scope.born))

    def narrowed_store(self, slot: Slot, value: Any) -> Any:
        """A stored value as far as it is known here; the same for the values of a container."""
        if slot.kind != "content":
            return narrowed(self, value)
        if isinstance(value, dict):
            found = {key: narrowed(self, v) for key, v in value.items()}
            return {key: v for key, v in found.items() if v is not UNSET}
        return type(value)(narrowed(self, v) for v in value)

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
        done = Region.open(self.tracing, self.region, f"exit_{location.line}")
        rest = Region.open(self.tracing, self.region, f"rest_{location.line}")
        self.leave_pending(test, done, Flow(dict(flow.env), flags), rest, Journal(), True, location)

    # ---- what the operators ask for

    def branch(self, test: Any, names: tuple[str, ...]) -> Any:
        """``if test``: Python, or staged."""
        from dy2st.operators.branch import NOT_TAKEN, TAKEN
        from dy2st.operators.staged_branch import StagedBranch

        decided = condition(test)
        if isinstance(decided, bool):
            return TAKEN if decided else NOT_TAKEN
        branch = StagedBranch(self, decided, names, sys._getframe(2))
        self.sites.branch(branch.location)
        return branch

    def loop(self, names: tuple[str, ...], targets: tuple[str, ...], yields: bool) -> Any:
        """A ``while`` or ``for``."""
        from dy2st.operators.staged_loop import CapturedLoop

        return self.advances.driver(CapturedLoop(self, names, targets, yields))

    def function(self) -> Any:
        """A function with early returns."""
        from dy2st.operators.staged_function import CapturedFunction

        return self.advances.driver(CapturedFunction(self))

    def lazy(self, first: Any, *, conjunction: bool) -> Any:
        """``first and ...`` or ``first or ...``."""
        from dy2st.operators.logic import PythonLazy
        from dy2st.operators.staged_logic import StagedLazy

        decided = condition(first)
        if isinstance(decided, bool):
            return PythonLazy(first, decided, decided is conjunction)
        return StagedLazy(self, first, decided, conjunction, sys._getframe(2))

    def not_(self, value: Any) -> Any:
        """``not value``."""
        return truth_number(negated(condition(value)))

    def in_(self, item: Any, container: Any) -> Any:
        """``item in container``; staged when tensors or staged numbers have to be compared."""
        from dy2st.operators.staged_logic import contains

        return contains(item, container)

    def same_list(self, a: Any, b: Any) -> Any:
        """``a == b``, where one is a list or dict display or a shape."""
        from dy2st.operators.distribution import iterated
        from dy2st.operators.lists import same_list
        from dy2st.operators.sequences import are_staged, same_sizes

        for value in (a, b):
            if isinstance(value, dict):
                iterated(self, value)
        return same_sizes(a, b) if are_staged(a, b) else same_list(a, b)

    def unpacked(self, value: Any) -> Any:
        """What is unpacked into targets one of which is starred."""
        from dy2st.operators.lists import refuse_unpacking

        refuse_unpacking(value)
        return value

    def is_(self, a: Any, b: Any) -> Any:
        """``a is b``."""
        from dy2st.operators.distribution import verdict

        for value, other in ((a, b), (b, a)):
            if isinstance(value, Poison):
                value.refuse()
            if isinstance(value, OneOf):
                return a is b or verdict(value, lambda case, other=other: self.is_(case, other))  # type: ignore[misc]
            if isinstance(value, Number) and value.kind is bool and isinstance(other, bool):
                return value if other else self.not_(value)
            numbers = isinstance(value, Number) and a is not b and number_kind(other) is not None
            if numbers or any(value is kind for kind in OUR_CLASSES):
                raise IdentityError(
                    "an identity test of a number, or of the class of a value, that is known only when the graph runs",
                    hint="compare numbers with ==, and classes with isinstance() or type()",
                )
        if a is not b and a is not None and b is not None and self.aliases.unsure(a, b):
            raise IdentityError(
                "an identity test of what may or may not be the same object, depending on the path taken before",
                hint="compare a flag that is set in the branch",
            )
        return a is b

    def truth(self, value: Any) -> Any:
        """A condition where staging is impossible."""
        decided = condition(value)
        if isinstance(decided, bool):
            return decided
        from dy2st.operators.comprehension import filtered
        from dy2st.operators.native_filter import filters

        frame = sys._getframe(2)
        if filtered(self, decided, frame) or filters(decided, frame):
            return True
        raise ComprehensionError(
            "a tensor decides a condition inside an expression that dy2st can't stage (a comprehension or a match)",
            hint="write it as a for loop with an if statement",
            location=location_of(sys._getframe(2)),
        )

    def assertion(self, value: Any) -> Any:
        """The test of an ``assert``: a tensor's is checked when the program runs."""
        decided = condition(value)
        if isinstance(decided, torch.Tensor):
            frame = sys._getframe(2)
            if self.watched:
                raise CaughtError(
                    "an assert on a tensor stands inside a try statement, which may catch its exception",
                    hint="move it out of the try, or test for the case with an if",
                    location=location_of(frame),
                )
            self.guards.require(decided, location_of(frame))
            return True
        return decided

    def call(self, function: Any) -> Any:
        """What to call in place of ``function``."""
        from dy2st.operators.following import followed, with_cases

        found = followed(self, function)
        return with_cases(self, function, found)

    def each(self, iterable: Any) -> Any:
        """The iterable of a comprehension."""
        from dy2st.operators.comprehension import Comprehension, is_own_frame
        from dy2st.operators.distribution import iterated
        from dy2st.operators.iterables import as_iterable
        from dy2st.operators.native_filter import NativeClause

        frame = sys._getframe(2)
        staged = as_iterable(iterated(self, iterable) if isinstance(iterable, dict) else iterable)
        if staged is not None:
            return Comprehension(self, staged, frame)
        # Of several clauses only the first is evaluated outside of the comprehension's own frame.
        return iterable if is_own_frame(frame) else NativeClause(self, iterable, frame)

    def collected(self, values: Any) -> Any:
        """The elements of a generator expression that a builtin consumes, as a list."""
        from dy2st.operators.comprehension import finished
        from dy2st.operators.distribution import users_frame

        self.collecting.append(values)
        try:
            made = list(values)
        finally:
            self.collecting.pop()
        return finished(self, made, users_frame()) if self._comprehension_open() else made

    def _comprehension_open(self) -> bool:
        return bool(self.comprehensions) and self.comprehensions[-1].scope is self.scopes[-1]

    def target(self, owner: Any) -> Any:
        """The object of an attribute or item store."""
        from dy2st.operators.staged_stores import store_target

        return store_target(self, owner)

    def item(self, owner: Any) -> Any:
        """The object of a subscript load."""
        from dy2st.operators.staged_stores import load_target

        return load_target(owner)

    def text(self, value: Any) -> Any:
        """A text that was put together from values."""
        return text(value)

    def formatted(self, template: str, values: Any) -> Any:
        """``template % values``; what is staged has no text before the graph runs."""
        if any(is_staged(leaf) for leaf in pytree.tree_leaves(values)):
            return text(f"{template} <{UNKNOWN}>")
        return text(template % values)

    def subject(self, value: Any, *, classes: bool) -> Any:
        """The subject of a native ``match``."""
        from dy2st.operators.distribution import subject

        return subject(self, value, classes=classes)

    def read(self, value: Any, name: str) -> Any:  # a Poison knows its name
        """A load of a variable that may have no value."""
        if isinstance(value, Poison):
            value.refuse(name)
        if isinstance(value, OneOf):
            from dy2st.operators.distribution import present

            return present(self, value, sys._getframe(2))
        return value

    def touch_content(self, owner: Any) -> None:
        """A change of a container's content follows; other objects are no business of the journal."""
        if isinstance(owner, CONTAINERS):
            self.touch(Slot.of("content", owner))

    def touch_global(self, name: str, namespace: dict[str, Any]) -> None:
        """A store to a global follows."""
        self.touch(Slot.of("global", namespace, name))

    def touch_nonlocal(self, reader: Any) -> None:
        """A store to a closure's variable follows."""
        self.touch(Slot.of("cell", reader.__closure__[0]))

    def try_(self) -> Any:
        """A ``try`` statement."""
        from dy2st.operators.staged_function import CapturedTry

        return self.advances.driver(CapturedTry(self))

    def generator(self) -> Any:
        """A generator starts."""
        from dy2st.operators.generators import CapturedGenerator

        return CapturedGenerator(self)

    def manager(self, manager: Any) -> Any:
        """The context manager of a ``with`` statement."""
        from dy2st.operators.managers import CapturedManager

        return self.advances.driver(CapturedManager(self, manager))

    def block(self, statement: str) -> Any:
        """The suite of a ``finally`` or ``with`` statement with jumps in it."""
        from dy2st.operators.staged_function import CapturedBlock, WithBlock

        if statement == "with":
            return self.advances.driver(WithBlock(self, sys._getframe(2)))
        return self.advances.driver(CapturedBlock(self))


def drop_grad_mode(capture: Capture) -> None:
    """What ran without gradients is detached; torch.export would move it into subgraphs, and lose ours in doing so."""
    capture.scopes[0].region.drop_grad_mode()
    root = capture.tracing.tracer.root
    stop_gradients(root, capture.tracing.root.graph)


def write_buffers(capture: Capture, result: Any) -> Any:
    """At the end of a program: a buffer that was assigned gets its new value in place; the program's result."""
    changed = []
    for slot, old in capture.scopes[0].journal.old.items():
        buffers = slot.owner.__dict__.get("_buffers", {}) if isinstance(slot.owner, torch.nn.Module) else {}
        if slot.kind != "attribute" or slot.name not in buffers or not isinstance(old, torch.Tensor):
            continue
        new = slot.get()
        if new is old:
            continue
        if not isinstance(new, torch.Tensor) or new.dtype is not old.dtype or new.dim() != old.dim():
            raise BufferKindError(
                f"the buffer {slot.name!r} is assigned {describe(new)} in place of {describe(old)}",
                hint="give a buffer a fixed dtype and rank, or keep the value in a plain attribute",
                location=stored_at(type(slot.owner), slot.name),
            )
        changed.append((old, new))
    if not changed:
        return result
    storages = {old.untyped_storage()._cdata for old, _ in changed}

    def own(value: Any) -> Any:
        shares = isinstance(value, torch.Tensor) and value.untyped_storage()._cdata in storages
        return value.clone() if shares else value

    result = pytree.tree_map(own, result)
    # These writes are ours: what a buffer was assigned is what it holds at the end.
    capture.tracing.check = lambda _node: None
    copies = [(old, new.clone()) for old, new in changed]
    for old, new in copies:
        old.copy_(new)
    return result


def tie_guards(capture: Capture, result: Any) -> Any:
    """At the end of a program: its first output waits for the guards."""
    leaves, spec = pytree.tree_flatten(result)
    first = next((i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)), None)
    if first is not None:
        leaves[first] = capture.guards.after(leaves[first])
    return pytree.tree_unflatten(leaves, spec)


@contextlib.contextmanager
def capturing() -> Iterator[Capture]:
    """Start a capture inside a running trace."""
    before = MODE.capture
    capture = Capture() if MODE.kind is None else MODE.kind()
    MODE.capture = capture
    MADE.any = False
    try:
        with watched_texts():
            yield capture
    finally:
        MODE.capture = before
        capture.restore_classes()
        capture.scopes[0].region.enter()
        for scope in reversed(capture.scopes):
            scope.journal.take()
