"""What a loop's body sees at the head of an iteration: placeholders for all that it carries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from dy2st.operators.export_session import current
from dy2st.staging.lattice.join import Phi, Structured, leaves, rebuild
from dy2st.staging.loops.stacked_outputs import StackedOutput
from dy2st.staging.loops.template import LoopTemplate, Place
from dy2st.staging.loops.widening import Entry
from dy2st.staging.memory.sharing import StandIns
from dy2st.staging.visibility import is_seen
from dy2st.tracing.graph_ops import SizeTable, carried_like
from dy2st.tracing.subgraph import new_input
from dy2st.tracing.wanted_gradients import Carried
from dy2st.values.container_structure import changeable
from dy2st.values.describing import shown
from dy2st.values.journal import Slot
from dy2st.values.stacked_list import StackedList
from dy2st.values.undefined import UNSET, Undefined


def first_sides(entry: Entry) -> Iterator[Any]:
    """The containers from before a loop that an entry of its state stands for, in the first iteration."""
    if isinstance(entry, Structured):
        yield from entry.sides[:1]
        for child in entry.children:
            yield from first_sides(child)


class LoopPlaceholders:
    """The head of one run of a loop's body: ``values`` by variable or slot, and the ``inputs`` of its subgraph."""

    def __init__(self, state: LoopTemplate) -> None:
        self.state = state
        self.loop, self.scope, self.capture = state.loop, state.scope, state.capture
        tracing = self.capture.tracing
        self.inputs: list[fx.Node] = []
        with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
            counter = torch.empty((), dtype=torch.int64)
        self.counter = self._placeholder(counter, "iteration")
        self.placed: dict[Place, torch.Tensor] = {}
        self.stand_ins = StandIns(self.capture.original)
        # By entry, the rows so far and their placeholders.
        self.rows_nodes: dict[int, tuple[list[fx.Node], StackedList]] = {}
        self.table = SizeTable(tracing.shape_env)
        for key, entry in state.template.items():
            if not isinstance(entry, StackedOutput):
                for leaf, classes in zip(leaves(entry), state.vary.get(key, []), strict=False):
                    self.table.note(state.initial_sizes(leaf), state.varying(classes))
        self.values: dict[Any, Any] = {key: self._value(key, entry) for key, entry in state.template.items()}
        self.stand_ins.note(self.capture.aliases)
        for pair in state.shared:
            if all(isinstance(cell, int) or cell in self.placed for cell in pair):
                self.capture.aliases.relate(self._storage(pair[0]), self._storage(pair[1]))
        for name in self.loop.all_names:
            if name not in self.values:
                before = state.before[name]
                self.values[name] = self._unset(name) if before is UNSET else before
        for key, value in self.values.items():
            if isinstance(key, Slot):
                self.capture.store(key, value)
        # What refers to itself would keep tensors alive that nobody can reach.
        del self.state

    def drop_rows(self, entry: StackedOutput) -> None:
        """Nobody reads the rows so far of an entry: they are no input of the body."""
        for node in self.rows_nodes[id(entry)][0]:
            self.scope.subgraph.graph.erase_node(node)

    def place_rows(self, entry: StackedOutput) -> None:
        """The rows so far of an entry become the body's next inputs."""
        for node in self.rows_nodes[id(entry)][0]:
            # A subgraph's arguments come in the order of their nodes.
            self.inputs[-1].append(node)
            self.inputs.append(node)

    def _value(self, key: Any, entry: Entry) -> Any:
        if isinstance(entry, StackedOutput):
            return [*entry.before, self._rows_so_far(entry)]
        if isinstance(entry, Phi) and entry.a is UNSET:
            for position, leaf in enumerate(leaves(entry)):
                self._leaf_placeholder(key, position, leaf)
            # The others have that of an iteration before, which may not be read yet.
            unset = self._unset(shown(key))
            self.scope.unset[self.loop.frame, shown(key)] = unset
            return unset
        placeholders: dict[int, Any] = {}
        for position, leaf in enumerate(leaves(entry)):
            made = self._leaf_placeholder(key, position, leaf)
            one = self.state.same.get((key, position))
            made = made if one is None else self.placed.get(one, made)
            placeholders[id(leaf)] = self.placed[key, position] = made

        def stands_in(built: Any, sides: tuple[Any, ...]) -> Any:
            """A change of it is one of the value; in the first iteration, of what was before the loop, too."""

            def note() -> None:
                self.scope.born[id(built)] = built
                # Nobody in the body reads what a jump takes out of the loop.
                outside = self._from_outside(sides[-1]) if isinstance(key, (str, Slot)) else []
                first = sides[0]
                seen = first is not UNSET and is_seen(first, key, self.loop.frame, self.loop.before)
                if not isinstance(built, tuple) and (seen or outside):
                    for each in (built, *outside):
                        self.capture.aliases.object_is_shared(each)

            return self.stand_ins.of(sides, built, note)

        return rebuild(entry, lambda leaf: placeholders[id(leaf)], shown(key), self.loop.location, stands_in)

    def _storage(self, cell: Any) -> int:
        """The storage of what a leaf is at the head; one from outside is itself."""
        return cell if isinstance(cell, int) else self.capture.aliases.storage(self.placed[cell])

    def _from_outside(self, end: Any) -> list[Any]:
        """The containers from before the loop, but for its state, that an iteration ends with on some path."""
        carried = {id(side) for entry in self.state.template.values() for side in first_sides(entry)}
        left, own, found = [end], self.state.ended_born | carried, []
        while left:
            each = self.capture.original(left.pop())
            if id(each) in own or each is UNSET or not changeable(each):
                continue
            if is_seen(each, None, self.loop.frame, self.loop.before):
                found.append(each)
            elif id(each) in self.capture.joined:
                left += self.capture.joined[id(each)][1]
        return found

    def _rows_so_far(self, entry: StackedOutput) -> StackedList:
        """The rows appended by earlier iterations; the placeholders are dropped if nobody reads them."""
        rows = entry.so_far(self.capture, self.table, self._placeholder)
        nodes = [self.inputs.pop() for _ in rows.held]
        self.rows_nodes[id(entry)] = (nodes[::-1], rows)
        return rows

    def _leaf_placeholder(self, key: Any, position: int, leaf: Phi) -> Any:
        tracing = self.capture.tracing
        vary = self.state.vary.get(key, [])
        varying = self.state.varying(vary[position] if position < len(vary) else {})
        with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
            like = torch.empty(self.state.initial_sizes(leaf), dtype=leaf.dtype)
            made = carried_like(self.table, [like], [varying])[0]
        placed = self._placeholder(made, str(key) if isinstance(key, str) else "state")
        before = tracing.node_of(leaf.a) if isinstance(leaf.a, torch.Tensor) else None
        with torch._C.DisableTorchFunction():
            constant = before is None and isinstance(leaf.a, torch.Tensor) and not leaf.a.requires_grad
        if before is not None or leaf.kind is not None or constant:
            current().part(Carried).before[self.inputs[-1]] = before
        return placed

    def _placeholder(self, value: torch.Tensor, name: str) -> torch.Tensor:
        tracing = self.capture.tracing
        node = new_input(self.scope.subgraph.graph, name, len(self.inputs))
        self.inputs.append(node)
        tracing.track(value, tracing.tracer.proxy(node))
        return value

    def _unset(self, name: str) -> Undefined:
        return Undefined(
            name,
            "it has no value in the loop's first iteration",
            f"give {name!r} a value before the loop at line {self.loop.location.line}",
            self.loop.location,
        )
