"""The state of a staged loop: found by running the body until join(before, after) says nothing new."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from dy2st.errors import UnsettledStateError
from dy2st.graph.aliases import storage_key
from dy2st.graph.containers import changeable
from dy2st.graph.describing import shown
from dy2st.graph.emit import emit_loop, fresh_copy
from dy2st.graph.grad_mode import GRADIENTS
from dy2st.graph.join import (
    ONE_OF,
    ROWS,
    Group,
    Join,
    Kept,
    Leaf,
    Lost,
    leaf_tensor,
    leaves,
    rebuild,
)
from dy2st.graph.journal import Slot
from dy2st.graph.numbers import Number
from dy2st.graph.ops import SizeTable, carried_like
from dy2st.graph.paths import quoted
from dy2st.graph.poison import UNSET, Poison
from dy2st.graph.region import new_input, storage_of
from dy2st.graph.rows import Rows
from dy2st.graph.sharing import StandIns, first_alike, sharing
from dy2st.graph.tracing import at_least, same_size
from dy2st.operators.first_trip import check_first_trip, is_seen
from dy2st.operators.flow import Flow
from dy2st.operators.naming import changed
from dy2st.operators.peeling import FIRST_ITERATIONS, AgainError, builds
from dy2st.operators.refining import Entry, refined, reused
from dy2st.operators.scopes import Present
from dy2st.operators.stacked import Stacked, check_not_written
from dy2st.operators.uneven import Side, is_rows, resolved

if TYPE_CHECKING:
    from dy2st.operators.staged_loop import CapturedLoop

MOST_PASSES = 12

# A leaf of the state: the variable or slot, and its number in there.
Place = tuple[Any, int]
# Dimension to class: sizes of one class are equal in every iteration.
Vary = dict[int, int]


def shape_of(value: Any) -> tuple[Any, ...]:
    """The sizes of a numeric value."""
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def expression(size: Any) -> Any:
    """A size as something that compares by value."""
    return size.node.expr if isinstance(size, torch.SymInt) else size


def _has_cases(entry: Entry) -> bool:
    if not isinstance(entry, Group):
        return False
    return entry.signature[0] in (ONE_OF, ROWS) or any(_has_cases(child) for child in entry.children)


def first_sides(entry: Entry) -> Iterator[Any]:
    """The containers from before a loop that an entry of its state stands for, in the first iteration."""
    if isinstance(entry, Group):
        yield from entry.sides[:1]
        for child in entry.children:
            yield from first_sides(child)


class LoopState:
    """The template of a loop's state, and the region in which its body is being traced."""

    def __init__(self, loop: CapturedLoop, go: Any, trips: Any) -> None:
        self.loop = loop
        self.capture = loop.capture
        self.go = go
        self.guarded = self.capture.guards.token is not None
        self.trips = trips
        self.before: dict[Any, Any] = {n: loop.before.get(n, UNSET) for n in loop.all_names}
        self.around = Side(self.capture.region.layer)
        self.sides = self.around, self.around
        self.runs_once = self._runs_at_least_once()
        self.template: dict[Any, Entry] = {}
        self.vary: dict[Any, list[Vary]] = {}
        # The leaves whose values at the end of an iteration share memory, or may do so.
        self.shared: set[tuple[Place, Place]] = set()
        self.passes = 0
        # Whether something that is carried has another structure than it began with.
        self.odd = False
        # What the last run of the body has changed once more, for a message.
        self.unsettled: list[str] = []
        self.watch_births = False
        # What the last run of the body has made.
        self.ended_born: frozenset[int] = frozenset()
        self.site = loop.site
        known = self.capture.templates.get(self.site)
        if known is not None:
            for key, entry in known[0].items():
                again = reused(entry, self.before.get(key, UNSET)) if isinstance(key, str) else None
                if again is not None:
                    self.template[key] = again
                    self.vary[key] = known[1].get(key, [])

    def _runs_at_least_once(self) -> bool:
        if self.go is not None:
            return False
        if self.trips is None:
            return True
        return not isinstance(self.trips, Number) and at_least(self.trips, 1)

    # ---- one run of the body

    def begin(self) -> None:
        """Open the body's region, with placeholders for everything that is carried."""
        self.passes += 1
        FIRST_ITERATIONS.suspects.add(self.site)
        if self.passes > MOST_PASSES:
            raise UnsettledStateError(
                f"the state of this loop does not settle: {', '.join(self.unsettled) or 'its structure'} changes with"
                " every iteration",
                hint="carry tensors of fixed rank and dtype, and append to lists in place of nesting containers",
                location=self.loop.location,
            )
        capture = self.capture
        self.scope = capture.push(f"body_{self.loop.location.line}", arm=not self.runs_once)
        if self.watch_births:
            self.scope.older = Present()
        tracing = capture.tracing
        self.inputs: list[fx.Node] = []
        with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
            counter = torch.empty((), dtype=torch.int64)
        self.counter = self._placeholder(counter, "iteration")
        self.head: dict[Any, Any] = {}
        self.placed: dict[Place, torch.Tensor] = {}
        self.stand_ins = StandIns(capture.original)
        # By entry, the rows so far and their placeholders.
        self.rows_nodes: dict[int, tuple[list[fx.Node], Rows]] = {}
        table = SizeTable(tracing.shape_env)
        for key, entry in list(self.template.items()):
            self.head[key] = self._head_value(key, entry, table)
        self.stand_ins.note(capture.aliases)
        for one, other in self.shared:
            if one in self.placed and other in self.placed:
                capture.aliases.may_be(self.placed[one], self.placed[other])
        for name in self.loop.all_names:
            if name not in self.head:
                self.head[name] = self._unset(name) if self.before[name] is UNSET else self.before[name]
        for key, value in self.head.items():
            if isinstance(key, Slot):
                capture.store(key, value)

    def _head_value(self, key: Any, entry: Entry, table: SizeTable) -> Any:
        if isinstance(entry, Stacked):
            return [*entry.before, self._rows_so_far(entry, table)]
        if isinstance(entry, Leaf) and entry.a is UNSET:
            for position, leaf in enumerate(leaves(entry)):
                self._leaf_placeholder(key, position, leaf, table)
            return self._unset(shown(key))
        placeholders: dict[int, Any] = {}
        for position, leaf in enumerate(leaves(entry)):
            placeholders[id(leaf)] = self.placed[key, position] = self._leaf_placeholder(key, position, leaf, table)

        def stands_in(built: Any, sides: tuple[Any, ...]) -> Any:
            """A change of it is one of the value; in the first iteration, of what was before the loop, too."""
            found = self.stand_ins.known(sides)
            if found is not None:
                return found
            self.stand_ins.add(built, sides)
            self.scope.born[id(built)] = built
            outside = self._from_outside(sides[-1])
            seen = is_seen(sides[0], key, self.loop.frame, self.loop.before)
            if not isinstance(built, tuple) and (seen or outside):
                self.capture.may_be_older(built, *outside)
            return built

        return rebuild(entry, lambda leaf: placeholders[id(leaf)], shown(key), self.loop.location, stands_in)

    def _from_outside(self, end: Any) -> list[Any]:
        """The containers from before the loop, but for its state, that an iteration ends with on some path."""
        state = {id(side) for entry in self.template.values() for side in first_sides(entry)}
        left, own, found = [end], self.ended_born | state, []
        while left:
            each = self.capture.original(left.pop())
            if id(each) in own or each is UNSET or not changeable(each):
                continue
            if id(each) in self.capture.joined:
                left += self.capture.joined[id(each)][1]
            elif is_seen(each, None, self.loop.frame, self.loop.before):
                found.append(each)
        return found

    def _rows_so_far(self, entry: Stacked, table: SizeTable) -> Rows:
        """The rows appended by earlier iterations; the placeholders are dropped if nobody reads them."""
        rows = entry.so_far(self.capture, table, self._placeholder)
        nodes = [self.inputs.pop() for _ in rows.columns]
        self.rows_nodes[id(entry)] = (nodes[::-1], rows)
        return rows

    def _leaf_placeholder(self, key: Any, position: int, leaf: Leaf, table: SizeTable) -> Any:
        tracing = self.capture.tracing
        vary = self.vary.get(key, [])
        pairs = list((vary[position] if position < len(vary) else {}).items())
        with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
            like = torch.empty(self._initial_sizes(leaf), dtype=leaf.dtype)
            made = carried_like(table, [like], [pairs])[0]
        return self._placeholder(made, str(key) if isinstance(key, str) else "state")

    def _initial_sizes(self, leaf: Leaf) -> list[Any]:
        if leaf.a is not UNSET:
            return list(shape_of(leaf.a))
        first = self.scope.region.layer.first_symbol
        return [0 if self.capture.tracing.is_younger(s, first) else s for s in shape_of(leaf.b)]

    def _placeholder(self, value: torch.Tensor, name: str) -> torch.Tensor:
        tracing = self.capture.tracing
        node = new_input(self.scope.region.graph, name, len(self.inputs))
        self.inputs.append(node)
        tracing.track(value, tracing.tracer.proxy(node))
        return value

    def _unset(self, name: str) -> Poison:
        return Poison(
            name,
            "it has no value in the loop's first iteration",
            f"give {name!r} a value before the loop at line {self.loop.location.line}",
            self.loop.location,
        )

    # ---- the fixpoint

    def end(self, flow: Flow) -> bool:
        """The body has run: True if the state is stable, else the body is to be traced again."""
        capture = self.capture
        flow = capture.ended(flow, self.scope)
        stores = flow.stores
        self.ended_born = frozenset(self.scope.born)
        capture.pop()
        self.sides = self.around, Side(self.scope.region.layer, stores)
        self.after_pass = flow.env
        template: dict[Any, Entry] = {}
        for name in self.loop.names:
            before, after = self.before[name], flow.env.get(name, UNSET)
            born = before is UNSET and self.runs_once and after is not UNSET
            template[name] = self._refined(name, before, after, need_before=not born)
        for name in self.loop.targets:
            after = flow.env.get(name, UNSET)
            template[name] = self._refined(name, self.before[name], after, need_before=not self.runs_once)
        for slot, after in stores.items():
            template[slot] = self._slot_entry(slot, after)
        for key, value in flow.flags.items():
            template[key] = Leaf(False, value if isinstance(value, torch.Tensor) else value is True, torch.bool, None)
            if key[0] == "return":
                template[("value", key)] = self._refined(("value", key), UNSET, flow.env.get(key), need_before=False)
            else:
                self._outer_break(key, flow, template)
        self._look_for_a_first_iteration(template)
        vary = self._classes(template)
        old, new = self._signature(self.template, self.vary), self._signature(template, vary)
        shared = self._sharing(template)
        stable = old == new and shared <= self.shared
        self.shared |= shared
        self.unsettled = [quoted(shown(key)) for key in new[0] if new[0][key] != old[0].get(key)]
        # The entry whose placeholder stood for the rows so far in the run that has just ended.
        self.last = {id(e): self.template.get(k) for k, e in template.items() if isinstance(e, Stacked)}
        known = self.template
        self.template, self.vary = template, vary
        self.after = flow
        if not stable:
            new_slots = any(isinstance(key, Slot) and key not in known for key in template)
            if self.passes > 2 and not self.watch_births and new_slots:
                # Objects that only one run of the body has changed were made in it, unseen by the operators.
                self.watch_births = True
                self.template = {k: entry for k, entry in template.items() if not isinstance(k, Slot)}
            self.scope.region.forget_sizes()
            self.begin()
            return False
        capture.templates[self.site] = (template, vary)
        if not self.odd:
            FIRST_ITERATIONS.suspects.discard(self.site)
        return True

    def _look_for_a_first_iteration(self, template: dict[Any, Entry]) -> None:
        """Whether it builds what the others change; the export is then done again (``AgainError``)."""
        plan, site = FIRST_ITERATIONS, self.site
        if self.loop.yields or plan.apart.get(site) is False:
            return
        built = self.passes == 1 and any(
            builds(self.before[name], self.after_pass.get(name, UNSET)) for name in self.loop.names
        )
        changed = any(isinstance(self.template.get(key), Stacked) and is_rows(entry) for key, entry in template.items())
        if built or changed:
            raise AgainError(site, apart=site not in plan.apart)
        self.odd = any(isinstance(entry, (Stacked, Lost)) or _has_cases(entry) for entry in template.values())

    def _outer_break(self, key: Any, flow: Flow, template: dict[Any, Entry]) -> None:
        """A jump to an outer loop needs that loop's variables too; those of this loop are carried already."""
        for name in key[1].all_names:
            if name not in template and name != "go":
                before = self.loop.before.get(name, UNSET)
                template[name] = self._refined(name, before, flow.env.get(name, before))
                self.before.setdefault(name, before)

    def _slot_entry(self, slot: Slot, after: Any) -> Entry:
        before = slot.get()
        old = self.template.get(slot)
        if slot.kind == "content" and isinstance(slot.owner, (list, deque)) and not is_rows(old):
            head = self.head.get(slot, before)
            grown = len(after) > len(head) and all(x is y for x, y in zip(head, after, strict=False))
            if grown and getattr(slot.owner, "maxlen", None) is None:
                entry = Stacked.of(self.capture, before, after[len(head) :], self.loop.location)
                if isinstance(old, Stacked):
                    nodes, _ = self.rows_nodes[id(old)]
                    entry.read = old.read or any(node.users for node in nodes)
                return entry
        joined = self._refined(slot, before, after, content=slot.kind == "content")
        if isinstance(joined, Lost) and slot.kind == "content":
            raise changed(slot, joined, "in a staged loop", self.loop.location)
        return joined

    def _refined(self, key: Any, before: Any, after: Any, *, need_before: bool = True, content: bool = False) -> Join:
        """``refined``, with lists of uneven lengths as rows."""
        joined = refined(self.template.get(key), before, after, need_before=need_before, content=content)
        first = self.scope.region.layer.first_symbol
        return resolved(self.capture, joined, self.sides, first, heads=False)

    def _classes(self, template: dict[Any, Entry]) -> dict[Any, list[Vary]]:
        """The sizes that change by iteration; those that start equal and change alike share a class."""
        tracing, first = self.capture.tracing, self.scope.region.layer.first_symbol
        ids: dict[Any, int] = {}
        found: dict[Any, list[Vary]] = {}
        for key, entry in template.items():
            if isinstance(entry, Stacked):
                continue
            old = self.vary.get(key, [])
            found[key] = []
            for position, leaf in enumerate(leaves(entry)):
                known = old[position] if position < len(old) else {}
                sizes = self._initial_sizes(leaf)
                after = shape_of(leaf.b) if leaf.b is not UNSET else tuple(sizes)
                vary: Vary = {}
                for d, (a, b) in enumerate(zip(sizes, after, strict=True)):
                    if d in known or tracing.is_younger(b, first) or not same_size(a, b):
                        vary[d] = ids.setdefault((known.get(d), expression(a), expression(b)), len(ids))
                found[key].append(vary)
        return found

    def _sharing(self, template: dict[Any, Entry]) -> set[tuple[Place, Place]]:
        """Which leaves hold the same memory when an iteration ends, and so at the head of the next."""
        places = [
            ((key, position), leaf.b)
            for key, entry in template.items()
            if not isinstance(entry, Stacked)
            for position, leaf in enumerate(leaves(entry))
        ]
        found = sharing(self.capture.aliases, [value for _, value in places])
        return {(places[i][0], places[j][0]) for i, j in found}

    def _signature(self, template: dict[Any, Entry], vary: dict[Any, list[Vary]]) -> Any:
        def sign(entry: Entry) -> Any:
            if isinstance(entry, Stacked):
                return entry.signature()
            if isinstance(entry, Group):
                kinds = entry.signature if entry.signature[0] in (ONE_OF, ROWS) else None
                return (kinds, *(sign(c) for c in entry.children))
            return (type(entry).__name__, entry.kind if isinstance(entry, Leaf) else None)

        sizes = {k: vs for k, vs in vary.items() if any(vs)}
        return {k: sign(e) for k, e in template.items() if not isinstance(e, (Kept, Lost))}, sizes

    # ---- the result

    @GRADIENTS.emitting()
    def emit(self) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Emit the loop; the variables after it, and the flags of the jumps out of it."""
        capture, tracing = self.capture, self.capture.tracing
        body = self.scope.region
        carried = [
            (key, leaf)
            for key, entry in self.template.items()
            if not isinstance(entry, Stacked)
            for leaf in leaves(entry)
        ]
        lists = [(key, entry) for key, entry in self.template.items() if isinstance(entry, Stacked)]
        grown = [(key, entry) for key, entry in lists if entry.carried]
        stacks = [(key, entry) for key, entry in lists if not entry.carried]
        go = self.after.env["go"]
        with tracing.inside(body.layer):
            outputs = [fresh_copy(go) if isinstance(go, torch.Tensor) else torch.full((), bool(go), dtype=torch.bool)]
            outputs += [
                torch.zeros(self._initial_sizes(leaf), dtype=leaf.dtype)
                if leaf.b is UNSET
                else fresh_copy(leaf_tensor(leaf.b, leaf))
                for _, leaf in carried
            ]
            outputs += [column for _, entry in grown for column in entry.grown(self._so_far(entry))]
            rows = [row for _, entry in stacks for row in entry.rows()]
        check_first_trip(self)
        first_go = self.go
        if self.guarded and self.trips is None:
            # Where eager raises before the loop, the loop might never end.
            first_go = capture.guards.after(torch.full((), True) if first_go is None else first_go)
        initial = [
            fresh_copy(leaf_tensor(leaf.a, leaf))
            if leaf.a is not UNSET
            else torch.zeros(self._initial_sizes(leaf), dtype=leaf.dtype)
            for _, leaf in carried
        ]
        first = body.layer.first_symbol
        pairs = [tuple(v.items()) for key in self.template for v in self.vary.get(key, [])]
        next_class = 1 + max((c for p in pairs for _, c in p), default=-1)
        for i, (_, entry) in enumerate(grown):
            for like in entry.like:
                sizes = [0 if tracing.is_younger(s, first) else s for s in like.shape]
                initial.append(torch.zeros([0, *sizes], dtype=like.dtype))
                pairs.append(((0, next_class + i),))
        for _, entry in lists:
            self._place_rows(entry)
        trips = self.trips.tensor if isinstance(self.trips, Number) else self.trips
        own = body.own_storages()
        for _, entry in lists:
            entry.check(capture, body, self.after.stores, self.loop.location)
        for elements, _ in self.sides[1].listed:
            check_not_written(elements, body, self.loop.location)
        with tracing.at(self.loop.location):
            finals, stacked = emit_loop(
                tracing,
                capture.region,
                body,
                self.inputs,
                trips,
                first_go,
                initial,
                outputs,
                rows,
                pairs,
                go is not True,
            )
        same = first_alike([leaf for _, leaf in carried])
        finals = [finals[i] for i in same] + list(finals[len(carried) :])
        values = {id(leaf): value for (_, leaf), value in zip(carried, finals, strict=False)}
        for _, leaf in carried:
            # The value from before the loop, if it may not run at all, or if a path through the body leaves it; one
            # from outside that the body hands on.
            if not self.runs_once or capture.aliases.knows(leaf.b):
                capture.note_tensor(values[id(leaf)], leaf.a, set())
            capture.note_tensor(values[id(leaf)], leaf.b, own)
        for leaf, older in self._handed_on([leaf for _, leaf in carried]):
            capture.note_tensor(values[id(leaf)], older, set())
        ends = [[leaf.b for _, leaf in carried]]
        capture.note_sharing(finals, *ends, *([] if self.runs_once else [[leaf.a for _, leaf in carried]]))
        made: dict[Any, Any] = {}
        stand_ins = StandIns(capture.original)
        for key, joined in self.template.items():
            if not isinstance(joined, Stacked):
                made[key] = rebuild(
                    joined,
                    lambda leaf: values[id(leaf)],
                    shown(key),
                    self.loop.location,
                    functools.partial(capture.stand_in, stand_ins, born=frozenset(self.scope.born), key=key),
                )
        stand_ins.note(capture.aliases)
        final, stacks_left = iter(finals[len(carried) :]), iter(stacked)
        for slot, entry in grown:
            made[slot] = [*entry.before, Rows([next(final) for _ in entry.like], entry.element)]
        for slot, entry in stacks:
            made[slot] = entry.result([next(stacks_left) for _ in entry.like])
        return self._store(made)

    def _handed_on(self, carried: list[Leaf]) -> Iterator[tuple[Leaf, Any]]:
        """With ``a, b = b, a`` a value after the loop may be another's from before it."""
        heads = {storage_of(node): i for i, node in enumerate(self.inputs[1 : len(carried) + 1])}
        ends = [heads.get(storage_key(leaf.b)) if isinstance(leaf.b, torch.Tensor) else None for leaf in carried]
        for i, leaf in enumerate(carried):
            passed: set[int] = set()
            place = ends[i]
            while place is not None and place not in passed:
                passed.add(place)
                yield leaf, carried[place].a
                place = ends[place]

    def _store(self, made: dict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        env, flags = {}, {}
        for key, value in made.items():
            if isinstance(key, Slot):
                self.capture.store(key, value)
            elif isinstance(key, str):
                env[key] = value
            elif key[0] == "value":
                env[key[1]] = value
            else:
                flags[key] = value
        return env, flags

    def _so_far(self, entry: Stacked) -> Rows:
        """The rows so far, as tensors of the body."""
        return self.rows_nodes[id(self.last[id(entry)])][1]

    def _place_rows(self, entry: Stacked) -> None:
        """Make the placeholders of the rows so far inputs of the body, or drop them."""
        nodes, _ = self.rows_nodes[id(self.last[id(entry)])]
        for node in nodes:
            if entry.carried:
                # A subgraph's arguments come in the order of their nodes.
                self.inputs[-1].append(node)
                self.inputs.append(node)
            else:
                self.scope.region.graph.erase_node(node)
