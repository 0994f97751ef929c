"""The state of a staged loop: found by running the body until join(before, after) says nothing new."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NoReturn

import torch

from dy2st.errors import RaiseError, UnsettledStateError
from dy2st.plan import plan
from dy2st.source.assigning_lines import quoted
from dy2st.staging.branches.paths import close_to, flow_at_end
from dy2st.staging.conditions import both, either, negated, truth_number
from dy2st.staging.flow import Flow, Own, left_names
from dy2st.staging.lattice.join import (
    ROWS,
    TAGGED_UNION,
    Incompatible,
    Invariant,
    Join,
    Phi,
    Structured,
    leaves,
    structure_change,
)
from dy2st.staging.loops.least_sizes import Dimension, LeastSizes, Sizes
from dy2st.staging.loops.placeholders import LoopPlaceholders
from dy2st.staging.loops.stacked_outputs import StackedOutput
from dy2st.staging.loops.template import LoopStatement, LoopTemplate, Place, Vary, shape_of, tuple_lengths
from dy2st.staging.loops.widening import Entry, builds, kept_for_reuse, refined, reused
from dy2st.staging.memory.points_to import Binding, Pair, PointsTo
from dy2st.staging.memory.sharing import first_alike
from dy2st.staging.trace_frame import Present
from dy2st.staging.unequal_lengths import Side, is_rows, resolved
from dy2st.tracing.size_facts import constant_term, expression
from dy2st.tracing.subgraph import Subgraph, storage_of
from dy2st.tracing.tracer import at_least, same_size
from dy2st.values.describing import shown
from dy2st.values.journal import Slot
from dy2st.values.number import Number
from dy2st.values.plain_objects import plain_objects
from dy2st.values.references import note_outer
from dy2st.values.undefined import UNSET

MOST_PASSES = 12
CARRY = "carry tensors of fixed rank and dtype, and append to lists in place of nesting containers"


def _has_cases(entry: Entry) -> bool:
    if not isinstance(entry, Structured):
        return False
    return entry.signature[0] in (TAGGED_UNION, ROWS) or any(_has_cases(child) for child in entry.children)


def _flag_entry(value: Any) -> Phi:
    """A flag of ours, which no iteration has set before the first."""
    return Phi(False, value if isinstance(value, torch.Tensor) else value is True, torch.bool, None, hidden=True)


class LoopState(LoopTemplate):
    """The template of a loop's state, and the subgraph in which its body is being traced."""

    def __init__(self, loop: LoopStatement, go: Any, trips: Any) -> None:
        super().__init__(loop)
        self.go = go
        self.guarded = self.capture.guards.token is not None
        self.trips = trips
        self.around = Side(self.capture.subgraph.layer)
        self.sides = self.around, self.around
        self.runs_once = self._runs_at_least_once()
        self.least_sizes = LeastSizes(self.capture.tracing)
        # Each pair of ``points_to`` that a run of the body has known of.
        self.pairs: set[Pair] = set()
        # The storages of which something was known before the loop.
        self.known = set(self.capture.aliases.related)
        self.passes = 0
        # Whether something that is carried has another structure than it began with.
        self.odd = False
        # What the last run of the body has changed once more, for a message.
        self.unsettled: list[str] = []
        # What is a tuple of ever more lengths, for a message.
        self.growing: list[Any] = []
        self.watch_births = False
        self.site = loop.site
        known = self.capture.templates.get(self.site)
        if known is not None:
            for key, entry in known[0].items():
                again = reused(entry, self.before.get(key, UNSET)) if isinstance(key, str) else None
                if again is not None:
                    self.template[key] = again
                    self.vary[key] = known[1].get(key, [])
            points_to = self._points_to(self.template, {}, None, ())
            self.shared, self.pairs = points_to.head, points_to.signature

    def _runs_at_least_once(self) -> bool:
        if self.go is not None:
            return False
        if self.trips is None:
            return True
        return not isinstance(self.trips, Number) and at_least(self.trips, 1)

    # ---- one run of the body

    def begin(self) -> None:
        """Open the body's subgraph, with placeholders for everything that is carried."""
        self.passes += 1
        plan().suspects.add(self.site)
        if self.passes > MOST_PASSES:
            self._refuse()
        capture = self.capture
        self.scope = capture.push(f"body_{self.loop.location.line}", arm=not self.runs_once)
        if self.watch_births:
            self.scope.older = Present()
        self.least = self.least_sizes.bounds(self._dimensions(self.template, self.vary))
        self.heads = LoopPlaceholders(self)
        # What says that there is a first iteration; what is known of the state outside of it stays as it is.
        if isinstance(self.go, torch.Tensor):
            capture.learn(self.scope, self.go, value=True)
        if isinstance(self.trips, torch.SymInt):
            with capture.tracing.untraced():
                capture.tracing.assume(self.trips >= 1)

    def _refuse(self) -> NoReturn:
        """Say what of the state changes with every iteration."""
        what, hint = f"{', '.join(self.unsettled) or 'its structure'} changes with every iteration", CARRY
        if self.growing:
            what = f"{quoted(shown(self.growing[0]))} is a tuple that grows with every iteration"
            hint = "make it a list, and append to it (found.append(x) in place of found += (x,))"
        raise UnsettledStateError(
            f"the state of this loop does not settle: {what}", hint=hint, location=self.loop.location
        )

    @property
    def head(self) -> dict[Any, Any]:
        """The values at the head of the iteration that is traced, by variable or slot."""
        return self.heads.values

    @property
    def counter(self) -> torch.Tensor:
        """The number of the iteration that is traced, from 0 on."""
        return self.heads.counter

    # ---- the fixpoint

    def with_condition(self, flow: Flow, go: Any) -> Flow:
        """The end of an iteration as one path, at which it is known whether there is another one (``go``: the test).

        Raises:
            RaiseError: every path through the body ends in an exception.
        """
        if flow.raised:
            raise RaiseError(
                "every iteration of this loop raises an exception",
                hint="raise under a condition that some input does not meet",
                location=self.loop.location,
            )
        flow = Flow({**flow.env, Own.GOES_ON: go if flow.falls else False}, flow.flags, {})
        if len(self.capture.trace_frames) > self.loop.depth + 1:
            flow = self._close_with_condition(flow)
        flow.flags.pop(("continue", self.loop), None)
        jumped: Any = False
        for flag in flow.flags.values():
            jumped = either(jumped, flag)
        goes_on = flow.env[Own.GOES_ON]
        goes_on = goes_on.tensor if isinstance(goes_on, Number) else goes_on
        flow.env[Own.GOES_ON] = both(goes_on, negated(jumped))
        return flow

    def _close_with_condition(self, flow: Flow) -> Flow:
        """Close the pending branches of an iteration; an arm that jumped away has nothing to say about going on."""
        flow.env[Own.GOES_ON] = truth_number(flow.env[Own.GOES_ON])
        for scope in self.capture.trace_frames[self.loop.depth + 1 :]:
            if scope.pending is not None:
                scope.pending.flow.env.setdefault(Own.GOES_ON, False)
        names = (*self.loop.all_names, Own.GOES_ON)
        all_names, self.loop.all_names = self.loop.all_names, names
        try:
            return close_to(self.capture, self.loop.depth + 1, flow, names)
        finally:
            self.loop.all_names = all_names

    def ending(self) -> AbstractContextManager[None]:
        """While the values before and after an iteration are joined: what the body has made may be taken apart."""
        return plain_objects().made_here(self.scope.born)

    def end(self, flow: Flow) -> bool:
        """The body has run: True if the state is stable, else the body is to be traced again."""
        capture = self.capture
        flow = flow_at_end(capture, flow, self.scope)
        stores = flow.stores
        self.ended_born = frozenset(self.scope.born)
        capture.pop()
        self.sides = self.around, Side(self.scope.subgraph.layer, stores)
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
        self._add_jumps(flow, template)
        self.growing = [key for key, e in template.items() if len(tuple_lengths(e)) > MOST_PASSES // 2] or self.growing
        self._look_for_a_first_iteration(template)
        vary = self._classes(template)
        self.least_sizes.check(self.least, self._dimensions(template, self.vary))
        least = self.least_sizes.bounds(self._dimensions(template, vary))
        old, new = self._signature(self.template, self.vary), self._signature(template, vary)
        heads = {capture.aliases.storage(tensor): place for place, tensor in self.heads.placed.items()}
        self.points_to = self._points_to(template, heads, self.scope.subgraph, flow.flags)
        same = self._same(template)
        stable = old == new and self.least == least and self.points_to.signature <= self.pairs and same == self.same
        self.shared |= self.points_to.head
        self.pairs |= self.points_to.signature
        self.same = same
        self.unsettled = [quoted(shown(key)) for key in new[0] if new[0][key] != old[0].get(key)]
        self.last = {id(e): self.template.get(k) for k, e in template.items() if isinstance(e, StackedOutput)}
        known = self.template
        self.template, self.vary = template, vary
        self.after = flow
        if not stable:
            new_slots = any(isinstance(key, Slot) and key not in known for key in template)
            if self.passes > 2 and not self.watch_births and new_slots:
                # Objects that only one run of the body has changed were made in it, unseen by the operators.
                self.watch_births = True
                self.template = {k: entry for k, entry in template.items() if not isinstance(k, Slot)}
            self.scope.subgraph.forget_sizes()
            capture.sites.forget(self.scope.sites)
            self.begin()
            return False
        with capture.tracing.shape_env.ignore_fresh_unbacked_symbols(), capture.tracing.untraced():
            capture.templates[self.site] = (kept_for_reuse(template), vary)
        if not self.odd:
            plan().suspects.discard(self.site)
        return True

    def _look_for_a_first_iteration(self, template: dict[Any, Entry]) -> None:
        """Whether it builds what the others change; the export is then done again."""
        if self.loop.yields or not plan().may_repeel(self.site):
            return
        built = self.passes == 1 and any(
            builds(self.before[name], self.after_pass.get(name, UNSET)) for name in self.loop.names
        )
        changed = any(
            isinstance(self.template.get(key), StackedOutput) and is_rows(entry) for key, entry in template.items()
        )
        if built or changed:
            plan().repeel(self.site)
        self.odd = any(
            isinstance(entry, (StackedOutput, Incompatible)) or _has_cases(entry) for entry in template.values()
        )

    def _add_jumps(self, flow: Flow, template: dict[Any, Entry]) -> None:
        """What jumps out of the loop take along."""
        for key, value in flow.flags.items():
            template[key] = _flag_entry(value)
            taken = [key] if key[0] == "return" else left_names(flow.env, key[1]) if key[0] == "break" else []
            for name in taken:
                template[("value", name)] = self._refined(("value", name), UNSET, flow.env.get(name), need_before=False)
            if key[0] != "return":
                self._outer_break(key, flow, template)

    def _outer_break(self, key: Any, flow: Flow, template: dict[Any, Entry]) -> None:
        """A jump to an outer loop needs that loop's variables too; those of this loop are carried already."""
        for name in key[1].all_names:
            if name not in template and name is not Own.GOES_ON:
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
                first = self.scope.subgraph.layer.first_symbol
                note_outer(slot.owner)
                entry = StackedOutput.of(self.capture, before, after[len(head) :], self.loop.location, first)
                if isinstance(old, StackedOutput):
                    nodes, _ = self.heads.rows_nodes[id(old)]
                    entry.read = old.read or any(node.users for node in nodes)
                return entry
        joined = self._refined(slot, before, after, content=slot.kind == "content")
        if isinstance(joined, Incompatible) and slot.kind == "content":
            raise structure_change(slot, joined, "in a staged loop", self.loop.location)
        return joined

    def _refined(self, key: Any, before: Any, after: Any, *, need_before: bool = True, content: bool = False) -> Join:
        """``refined``, with lists of uneven lengths as rows."""
        joined = refined(self.template.get(key), before, after, need_before=need_before, content=content)
        first = self.scope.subgraph.layer.first_symbol
        return resolved(self.capture, joined, self.sides, first, heads=False)

    def _classes(self, template: dict[Any, Entry]) -> dict[Any, list[Vary]]:
        """The sizes that change by iteration; those that start apart by a number and change alike share a class."""
        tracing, first = self.capture.tracing, self.scope.subgraph.layer.first_symbol
        ids: dict[Any, int] = {}
        found: dict[Any, list[Vary]] = {}
        for key, entry in template.items():
            if isinstance(entry, StackedOutput):
                continue
            old = self.vary.get(key, [])
            found[key] = []
            for position, leaf in enumerate(leaves(entry)):
                known = old[position] if position < len(old) else {}
                sizes = self.initial_sizes(leaf)
                after = shape_of(leaf.b) if leaf.b is not UNSET else tuple(sizes)
                vary: Vary = {}
                for d, (a, b) in enumerate(zip(sizes, after, strict=True)):
                    if d in known or tracing.is_younger(b, first) or not same_size(a, b):
                        apart = constant_term(a)
                        vary[d] = ids.setdefault((known.get(d), expression(a) - apart, expression(b) - apart), len(ids))
                found[key].append(vary)
        return found

    def _dimensions(self, template: dict[Any, Entry], vary: dict[Any, list[Vary]]) -> dict[Dimension, Sizes]:
        """The sizes that change by iteration, as an iteration has found them."""
        found: dict[Dimension, Sizes] = {}
        for (key, position), leaf in self.places(template):
            classes = vary.get(key, [])
            after = shape_of(leaf.b) if leaf.b is not UNSET else shape_of(leaf.a)
            # Of what has no value before the loop nothing is known.
            before = shape_of(leaf.a) if leaf.a is not UNSET else (0,) * len(after)
            for d, number in (classes[position] if position < len(classes) else {}).items():
                found[key, position, d] = number, before[d], after[d]
        return found

    def places(self, template: dict[Any, Entry] | None = None) -> Iterator[tuple[Place, Phi]]:
        """The leaves that are carried, and where."""
        for key, entry in (self.template if template is None else template).items():
            if not isinstance(entry, StackedOutput):
                yield from (((key, position), leaf) for position, leaf in enumerate(leaves(entry)))

    def _points_to(
        self, template: dict[Any, Entry], heads: dict[int, Place], body: Subgraph | None, left: Iterable[Any]
    ) -> PointsTo:
        """What the leaves may share memory with.

        ``heads`` are their storages at the head of the run that has ended, ``body`` is what that has traced, ``left``
        are the jumps that leave the loop.
        """
        jumps = frozenset(left)
        aliases = self.capture.aliases
        storages = {place: storage for storage, place in heads.items()}
        outside: set[Any] = self.known | set(aliases.remembered) | aliases.real
        own: set[int] = set()
        if body is not None:
            own = body.own_storages()
            outside |= {storage_of(node) for node in body.nodes_outside()}
        bindings: dict[Any, Binding] = {}
        for place, leaf in self.places(template):
            before, end = (aliases.storage(v) if isinstance(v, torch.Tensor) else None for v in (leaf.a, leaf.b))
            bindings[place] = Binding(before, heads.get(end, end) if end is not None else None)
            # An end that the body has not made is from outside, whether or not anything has read it.
            outside |= {before, end} - own

        def related(cell: Any) -> Iterator[Any]:
            return (heads.get(other, other) for other in aliases.related.get(storages.get(cell, cell), ()))

        def staying(cell: Any) -> Iterator[Any]:
            return (heads.get(other, other) for other in aliases.related_staying(storages.get(cell, cell), jumps))

        return PointsTo(bindings, related, outside - {None, *heads}, staying)

    def _same(self, template: dict[Any, Entry]) -> dict[Place, Place]:
        """Of leaves that are the same tensors, each but the first, and that one."""
        places = [*self.places(template)]
        firsts = first_alike([leaf for _, leaf in places])
        return {places[i][0]: places[first][0] for i, first in enumerate(firsts) if i != first}

    def _signature(self, template: dict[Any, Entry], vary: dict[Any, list[Vary]]) -> Any:
        def sign(entry: Entry) -> Any:
            if isinstance(entry, StackedOutput):
                return entry.signature()
            if isinstance(entry, Structured):
                kinds = entry.signature if entry.signature[0] in (TAGGED_UNION, ROWS) else None
                return (kinds, *(sign(c) for c in entry.children))
            return (type(entry).__name__, entry.kind if isinstance(entry, Phi) else None)

        sizes = {k: vs for k, vs in vary.items() if any(vs)}
        return {k: sign(e) for k, e in template.items() if not isinstance(e, (Invariant, Incompatible))}, sizes

    def at_head(self, entry: StackedOutput) -> StackedOutput:
        """The entry whose placeholders stood for the rows so far of ``entry`` in the run that has just ended."""
        found = self.last[id(entry)]
        assert isinstance(found, StackedOutput)
        return found
