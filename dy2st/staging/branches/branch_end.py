"""The end of a branch: what its arms leave behind, as one."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from dy2st.errors import Location
from dy2st.staging.arm_facts import sizes_by_arm
from dy2st.staging.branches.equal_sizes import EqualSizes
from dy2st.staging.conditions import negated
from dy2st.staging.flow import Flow, Name, complete_left
from dy2st.staging.lattice.arm_ends import Ends
from dy2st.staging.lattice.arm_joins import apart, joined_at_ends
from dy2st.staging.lattice.join import (
    Incompatible,
    Invariant,
    Join,
    Phi,
    join,
    join_content,
    leaf_tensor,
    leaves,
    rebuild,
    structure_change,
)
from dy2st.staging.memory.sharing import StandIns, complete, first_alike
from dy2st.staging.session import Session
from dy2st.staging.unequal_lengths import Side, resolved
from dy2st.tracing.emission import Effects, emit_branch, fresh_copy
from dy2st.tracing.grad_mode import emitting
from dy2st.tracing.subgraph import Subgraph
from dy2st.values.describing import shown
from dy2st.values.plain_objects import plain_objects
from dy2st.values.undefined import UNSET


class BranchEnd:
    """Two arms of a branch on ``test``, closed, neither of which raises; ``joined`` emits it."""

    def __init__(
        self,
        capture: Session,
        test: torch.Tensor,
        arms: tuple[Subgraph, Subgraph],
        flows: tuple[Flow, Flow],
        location: Location,
    ) -> None:
        self.capture, self.test, self.arms, self.flows, self.location = capture, test, arms, flows, location
        # An arm has no size that was born in the other one.
        self.first_symbol = min(arm.layer.first_symbol for arm in arms)
        self.equal_sizes = EqualSizes(capture, arms)
        self.born = flows[0].born | flows[1].born
        self.sides = Side(arms[0].layer, flows[0].stores), Side(arms[1].layer, flows[1].stores)

    def joined(self, fall_names: tuple[Name, ...]) -> Flow:
        """The branch is emitted in the innermost subgraph; how what follows it begins."""
        a, b = self.flows
        complete_left(self.flows)
        needed = a.needed(fall_names), b.needed(fall_names)
        names = sorted(needed[0] | needed[1], key=str)
        slots = list(dict.fromkeys([*a.stores, *b.stores]))
        keys = list(dict.fromkeys([*a.flags, *b.flags]))
        around = (each for scope in self.capture.trace_frames[1:] if not scope.certain for each in scope.born)
        with plain_objects().made_here({*self.born, *around}):
            ends = Ends(a.stores, b.stores)
            joins = [*self._variables(names, needed, ends), *self._stores(slots, ends), *map(self._flag, keys)]
            self.capture.copies.update(ends.copies)
            complete(joins, self.capture.original)
        values = self._emit(joins)
        stand_ins = StandIns(self.capture.original)
        made = [
            rebuild(
                each,
                lambda leaf: values[id(leaf)],
                shown(key),
                self.location,
                functools.partial(self.capture.stand_in, stand_ins, born=self.born, key=key),
            )
            for each, key in zip(joins, [*names, *slots, *keys], strict=True)
        ]
        stand_ins.note(self.capture.aliases)
        env = dict(zip(names, made, strict=False))
        for slot, value in zip(slots, made[len(names) :], strict=False):
            self.capture.store(slot, value)
        raised = zip(keys, made[len(names) + len(slots) :], strict=True)
        return Flow(env, {key: value for key, value in raised if value is not False})

    def _variables(self, names: list[Any], needed: tuple[set[Any], set[Any]], ends: Ends) -> list[Join]:
        a, b = self.flows
        found = []
        for n in names:
            pair = self.equal_sizes.number(*ends.pair(a.env.get(n, UNSET), b.env.get(n, UNSET)))
            one = apart(joined_at_ends(*pair, (n in needed[0], n in needed[1]), self.arms), pair, self.born)
            found.append(self._settled(resolved(self.capture, one, self.sides, self.first_symbol)))
        return found

    def _stores(self, slots: list[Any], ends: Ends) -> list[Join]:
        a, b = self.flows
        found = []
        for slot in slots:
            old = slot.get()
            together = join_content if slot.kind == "content" else join
            one = together(*ends.pair(a.stores.get(slot, old), b.stores.get(slot, old)))
            one = resolved(self.capture, one, self.sides, self.first_symbol)
            if isinstance(one, Incompatible) and slot.kind == "content":
                raise structure_change(slot, one, "under a tensor condition", self.location)
            found.append(one)
        return found

    def _flag(self, key: Any) -> Join:
        x, y = (flow.flags.get(key, False) for flow in self.flows)
        same = isinstance(x, bool) and isinstance(y, bool) and x == y
        return join(x, y) if same else Phi(x, y, torch.bool, None, hidden=True)

    def _settled(self, joined: Join) -> Join:
        """What one path alone needs, and had before the branch already, is itself: a write to it is a write to that."""
        if isinstance(joined, Phi) and (joined.a is UNSET) is not (joined.b is UNSET):
            value = joined.b if joined.a is UNSET else joined.a
            if isinstance(value, torch.Tensor) and self.capture.tracing.node_of(value) is not None:
                return Invariant(value)
        return joined

    @emitting()
    def _emit(self, joins: list[Join]) -> dict[int, torch.Tensor]:
        """Emit the branch with the results that ``joins`` need; the results by the leaves' identity."""
        capture, tracing = self.capture, self.capture.tracing
        every = [leaf for j in joins for leaf in leaves(j)]
        places = first_alike(every)
        decided = {id(leaf): truth for leaf in every if (truth := self._truth(leaf)) is not None}
        found = [leaf for i, leaf in enumerate(every) if places[i] == i and id(leaf) not in decided]
        outputs: list[list[torch.Tensor]] = []
        for side, arm in zip("ab", self.arms, strict=True):
            with tracing.inside(arm.layer):
                outputs.append([self._side_value(leaf, side) for leaf in found])
        alike = [self.equal_sizes.tensors(x, y) for x, y in zip(*outputs, strict=True)]
        outputs = [[x for x, _ in alike], [y for _, y in alike]]
        if not found and not Effects.of(self.arms).bases:
            for arm in self.arms:
                capture.subgraph.layer.stale.update(arm.layer.stale)
            return decided
        own = [arm.own_storages() for arm in self.arms]
        with tracing.at(self.location):
            results = emit_branch(tracing, capture.subgraph, self.test, self.arms, (outputs[0], outputs[1]))
        sides = [leaf.a for leaf in found], [leaf.b for leaf in found]
        capture.aliases.joined(results, *zip(sides, own, strict=True), jumps=[flow.jumps for flow in self.flows])
        values = {id(leaf): value for leaf, value in zip(found, results, strict=True)}
        self._note_constants(found, results, outputs)
        return decided | {
            id(leaf): values[id(every[i])] for leaf, i in zip(every, places, strict=True) if id(every[i]) in values
        }

    def _note_constants(
        self, found: list[Phi], results: Sequence[torch.Tensor], outputs: Sequence[Sequence[torch.Tensor]]
    ) -> None:
        """What is constant in each arm says which of them ran."""
        tracing = self.capture.tracing
        for leaf, value in zip(found, results, strict=True):
            if leaf.kind is int:
                self.capture.constants.note(value, leaf.a, leaf.b)
        says = tracing.said_by(self.test, value=True)
        self.capture.size_branches.note(says, self.location, results, tuple(outputs))
        test = tracing.node_of(self.test)
        nodes = [
            (node, leaf.a, leaf.b)
            for leaf, value in zip(found, results, strict=True)
            if type(leaf.a) is int and type(leaf.b) is int and (node := tracing.node_of(value)) is not None
        ]
        if test is not None:
            self.capture.arm_facts.note(test, nodes, sizes_by_arm(tracing, results, outputs, self.first_symbol))

    def _truth(self, leaf: Phi) -> torch.Tensor | None:
        """What is True in one arm and False in the other one says which arm it was: the test, or its negation."""
        if leaf.a is leaf.b or not (isinstance(leaf.a, bool) and isinstance(leaf.b, bool)):
            return None
        return self.test if leaf.a else negated(self.test)

    def _side_value(self, leaf: Phi, side: str) -> torch.Tensor:
        """One side of a leaf as a tensor of its own; zeros where that side is not needed."""
        value, other = (leaf.a, leaf.b) if side == "a" else (leaf.b, leaf.a)
        if value is not UNSET:
            return fresh_copy(leaf_tensor(value, leaf))
        shape = other.shape if isinstance(other, torch.Tensor) else ()
        return torch.zeros(self.capture.tracing.sizes_outside(shape, self.first_symbol), dtype=leaf.dtype)
