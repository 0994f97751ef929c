"""A loop whose state is settled, as a node of the graph: what it carries, and the rows that it appends to lists."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from dy2st.errors import ListChangeError
from dy2st.report.file_arms import SOME_TRIP
from dy2st.staging.flow import Own
from dy2st.staging.lattice.join import Phi, leaf_tensor, leaves, rebuild
from dy2st.staging.loops.loop_state import LoopState
from dy2st.staging.loops.stacked_outputs import StackedOutput, check_not_written
from dy2st.staging.loops.template import LoopStatement
from dy2st.staging.memory.sharing import StandIns, first_alike
from dy2st.staging.routes import route_to
from dy2st.tracing.constructs import mark_node
from dy2st.tracing.emission import emit_loop, fresh_copy
from dy2st.tracing.grad_mode import emitting
from dy2st.tracing.graph_ops import Varying, loop_op
from dy2st.tracing.tracer import at_least
from dy2st.values.describing import shown
from dy2st.values.journal import Slot
from dy2st.values.number import Number
from dy2st.values.stacked_list import StackedList
from dy2st.values.undefined import UNSET


class LoopEmission:
    """What a loop's node takes and gives. ``run`` emits it."""

    def __init__(self, state: LoopState) -> None:
        self.state = state
        self.capture, self.body, self.location = state.capture, state.scope.subgraph, state.loop.location
        self.lists = [(key, entry) for key, entry in state.template.items() if isinstance(entry, StackedOutput)]
        self.grown = [(key, entry) for key, entry in self.lists if entry.carried]
        self.stacks = [(key, entry) for key, entry in self.lists if not entry.carried]
        self.carried = [
            leaf for entry in state.template.values() if not isinstance(entry, StackedOutput) for leaf in leaves(entry)
        ]

    @emitting()
    def run(self) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Emit the loop; the variables after it, and the flags of the jumps out of it."""
        state, capture = self.state, self.capture
        go = state.after.env[Own.GOES_ON]
        with capture.tracing.inside(self.body.layer):
            outputs = [self._going_on(go), *(self._value(leaf, leaf.b) for leaf in self.carried)]
            outputs += [column for _, entry in self.grown for column in entry.grown(self._so_far(entry))]
            rows = [row for _, entry in self.stacks for row in entry.rows()]
            self._check_sizes(rows)
            rows += [entry.sizes() for _, entry in self.grown if entry.uneven]
        first_go = self._first_go()
        initial = [self._value(leaf, leaf.a) for leaf in self.carried]
        pairs = [state.varying(vary) for key in state.template for vary in state.vary.get(key, [])]
        for columns, pair in self._no_rows(1 + max((c for p in pairs for _, c, _ in p), default=-1)):
            initial += columns
            pairs += [pair] * len(columns)
        for _, entry in self.lists:
            place = state.heads.place_rows if entry.carried else state.heads.drop_rows
            place(state.at_head(entry))
        trips = state.trips.tensor if isinstance(state.trips, Number) else state.trips
        for _, entry in self.lists:
            entry.check(capture, self.body, state.after.stores, self.location)
        for elements, _ in state.sides[1].listed:
            check_not_written(elements, self.body, self.location)
        with capture.tracing.at(self.location):
            finals, stacked = emit_loop(
                capture.tracing,
                capture.subgraph,
                self.body,
                state.heads.inputs,
                trips,
                first_go,
                initial,
                outputs,
                rows,
                pairs,
                go is not True,
            )
        count = len(self.carried)
        finals = [*(finals[i] for i in first_alike(self.carried)), *finals[count:]]
        self._note_sharing(finals[:count])
        return self._stored(self._results(finals, stacked))

    def _check_sizes(self, rows: list[torch.Tensor]) -> None:
        """Refuse rows whose size is another one in each iteration."""
        first = self.body.layer.first_symbol
        if any(self.capture.tracing.is_younger(size, first) for row in rows for size in row.shape):
            raise ListChangeError(
                "a loop appends tensors to a list, and their size may differ from one iteration to the next",
                hint="pad them to one size, or collect them in one tensor: found = torch.cat([found, piece])",
                location=self.location,
            )

    def _going_on(self, go: Any) -> torch.Tensor:
        return fresh_copy(go) if isinstance(go, torch.Tensor) else torch.full((), bool(go), dtype=torch.bool)

    def _value(self, leaf: Phi, side: Any) -> torch.Tensor:
        """One side of a leaf as a tensor of its own; zeros where there is none."""
        if side is UNSET:
            return torch.zeros(self.state.initial_sizes(leaf), dtype=leaf.dtype)
        return fresh_copy(leaf_tensor(side, leaf))

    def _first_go(self) -> Any:
        """Whether there is a first iteration. Where eager raises before the loop, the loop might never end."""
        go = self.state.go
        if self.state.guarded and self.state.trips is None:
            return self.capture.guards.after(torch.full((), True) if go is None else go)
        return go

    def _no_rows(self, next_class: int) -> Iterator[tuple[list[torch.Tensor], tuple[Varying, ...]]]:
        """No rows yet, for the lists that are carried; the columns of one list share a class of sizes."""
        first = self.body.layer.first_symbol
        for i, (_, entry) in enumerate(self.grown):
            columns = []
            for like in entry.like:
                sizes = self.capture.tracing.sizes_outside(like.shape, first)
                columns.append(torch.zeros([0, *sizes], dtype=like.dtype))
            yield columns, ((0, next_class + i, 0),)

    def _so_far(self, entry: StackedOutput) -> StackedList:
        """The rows so far, as tensors of the body."""
        return self.state.heads.rows_nodes[id(self.state.at_head(entry))][1]

    def _note_sharing(self, finals: list[torch.Tensor]) -> None:
        """What a result may be the same tensor as: another one, or one from outside of the loop."""
        aliases, points_to = self.capture.aliases, self.state.points_to
        places = [place for place, _ in self.state.places()]
        made: dict[Any, Any] = {p: aliases.storage(final) for p, final in zip(places, finals, strict=True)}
        # If it may not run at all, they are what they were before it.
        for pair in points_to.end if self.state.runs_once else points_to.end | points_to.before:
            one, other = (made.get(cell, cell) for cell in pair)
            if isinstance(one, int) and isinstance(other, int):
                aliases.relate(one, other)

    def _results(self, finals: list[torch.Tensor], stacked: list[torch.Tensor]) -> dict[Any, Any]:
        """What each variable and slot is after the loop."""
        capture = self.capture
        values = {id(leaf): value for leaf, value in zip(self.carried, finals, strict=False)}
        made: dict[Any, Any] = {}
        stand_ins = StandIns(capture.original)
        for key, joined in self.state.template.items():
            if not isinstance(joined, StackedOutput):
                made[key] = rebuild(
                    joined,
                    lambda leaf: values[id(leaf)],
                    shown(key),
                    self.location,
                    functools.partial(capture.stand_in, stand_ins, born=frozenset(self.state.scope.born), key=key),
                )
        stand_ins.note(capture.aliases)
        columns, stacks = iter(finals[len(self.carried) :]), iter(stacked)
        for slot, entry in self.stacks:
            made[slot] = entry.result([next(stacks) for _ in entry.like])
        for slot, entry in self.grown:
            grown = [next(columns) for _ in entry.like]
            if entry.uneven:
                made[slot] = entry.with_sizes(grown[0], next(stacks))
            else:
                made[slot] = [*entry.before, StackedList(grown, entry.element)]
        return made

    def _stored(self, made: dict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Store what the loop has changed elsewhere; the variables, and the flags of jumps."""
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


def mark_loop(loop: LoopStatement, *, once: bool, trips: Any, left: bool, jumped: bool) -> None:
    """The loop that was emitted last is this statement of the user's; the ways that it can go are noted.

    ``once``: it has a first iteration for certain. ``trips``: the most iterations, where its test does not decide them.
    ``left``: it is a ``for`` which a staged jump may leave before the end, as one that has ``jumped`` does.
    """
    fewest = 2 if not jumped and isinstance(trips, torch.SymInt) and at_least(trips, 2) else int(once)
    place = loop.location, route_to(loop.frame, loop), loop.capture.trace_frames[-1].visits
    ways = loop.capture.sites.of(loop.frame).loop(*place, fewest=fewest, trips=trips, jumps=loop.jumps, left=left)
    node = next(each for each in reversed(loop.capture.subgraph.graph.nodes) if each.target is loop_op)
    mark_node(node, replace(loop.location, construct="loop"), (SOME_TRIP,) if loop.apart else ways)
