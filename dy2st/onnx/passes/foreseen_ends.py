"""A loop that only counts until something is so of a row is no loop: the first such row is looked for.

Before, for ``for i in range(n): if x[i] != y[i]: break; count += 1``::

    count_end = Loop(n, "", count) <body = step (i, go, before) {
        same = Equal(Gather(x, i), Gather(y, i))
        stop = Not(same)
        after = Where(stop, before, Add(before, 1))
        on = Identity(same)
    }>

After::

    stops = Not(Equal(x, y))
    first = ArgMax<axis = 0, keepdims = 0>(Concat(Cast(stops), [1]))        # n where there is none
    count_end = Add(count, first)

So it is where the condition is computed of numbers in rows, one of each tensor in each trip, and where nothing of it
may fail: more rows are looked at than eager would. The states are such as stay, or become more by a fixed integer, in
the trip that ends the loop or in the others; or they take another number in the last one, or say that there was one.
Source: loop idiom recognition of LLVM, https://llvm.org/docs/Passes.html#loop-idiom-recognize-loop-idioms.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import onnx_ir as ir

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, INT32, INT64, op, put_in_place, recorder, recording
from dy2st.onnx.passes.graph_facts import is_onnx, same_shape
from dy2st.onnx.passes.loop_invariants import never_fails
from dy2st.onnx.passes.loop_sizes import constant_number, is_true, read_sizes
from dy2st.onnx.passes.node_copies import copies, needed_for
from dy2st.onnx.passes.repeated_nodes import is_pure
from dy2st.onnx.passes.trip_rows import TripRows

UINT8 = ir.DataType.UINT8
# What onnxruntime's Where is made for.
_CHOSEN = frozenset((FLOAT, DOUBLE, INT32, INT64))
_COPYING = frozenset(("Identity", "Not"))


def foresee_ends(model: ir.Model, opset: int, filled: AbstractSet[str]) -> None:
    """Write such loops so; in place, inner loops first. ``filled`` are the names of sizes that are never zero."""
    filled = filled | read_sizes(model.graph)
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            if node.op_type == "Loop" and is_onnx(node):
                _Ending(node, opset, filled).apply()


@dataclass(frozen=True)
class _Change:
    """What a trip makes of a state: something else, or the state itself (None), and what is added to it."""

    value: ir.Value | None = None
    more: int = 0


class _Ending(TripRows):
    """One loop, which ends where its condition says so."""

    def apply(self) -> None:
        """Write the loop as a search, if it is one."""
        loop, body = self.loop, self.body
        start = loop.inputs[1] if len(loop.inputs) > 1 else None
        stacks = len(loop.outputs) > len(body.inputs) - 2
        if self.length is None or stacks or body.inputs[1].uses() or (start is not None and not is_true(start)):
            return
        self.ended_by, self.means_end = _asked(body.outputs[0])
        self.means_end = not self.means_end
        if not self._is_foreseen() or not all(is_pure(node) or node.op_type == "If" for node in body):
            return
        changes = [self._changes(place) for place in range(len(loop.outputs))]
        if None in changes:
            return
        with recording(self.opset) as made:
            self.find_rows()
            values = None
            if self.ended_by in self.rows:
                values = self._values([each for each in changes if each is not None])
        if values is None:
            for node in made.nodes:
                for place in range(len(node.inputs)):
                    node.replace_input_with(place, None)
            return
        for value, old in zip(values, loop.outputs, strict=True):
            value.type, value.shape = old.type, old.shape
        put_in_place(loop, made.nodes, values)

    def _is_foreseen(self) -> bool:
        """Whether the condition is one of numbers that depend on the number of the trip alone, and can't fail."""
        assert self.length is not None
        needed = needed_for(self.body, [self.ended_by], ())
        states = set(self.body.inputs[1:])
        return bool(needed) and all(
            is_pure(node)
            and never_fails(node, {self.body.inputs[0]: self.length})
            and not any(value in states for value in node.inputs)
            and all(_is_number(out) for out in node.outputs)
            for node in needed
        )

    # ---- the states

    def _changes(self, place: int) -> tuple[_Change, _Change] | None:
        """What the trip that ends the loop makes of a state, and what each other trip does; None for anything else."""
        state, end = self.body.inputs[2 + place], self.body.outputs[1 + place]
        if state.dtype == BOOL:
            return (_Change(end), _Change()) if self._tells_of_the_end(place) else None
        last, others = (self._change(value, state) for value in self._chosen(end))
        if last is None or others is None or others.value is not None:
            return None
        return None if last.value is not None and others.more else (last, others)

    def _chosen(self, end: ir.Value) -> tuple[ir.Value, ir.Value]:
        """What a state is after the trip that ends the loop, and after each other trip."""
        node = end.producer()
        if node is None or node.op_type not in {"If", "Where"} or not is_onnx(node):
            return end, end
        asked, meant = _asked(node.inputs[0])
        if node.op_type == "Where":
            one, other = node.inputs[1:]
        else:
            place = list(node.outputs).index(end)
            one, other = (node.attributes[arm].as_graph().outputs[place] for arm in ("then_branch", "else_branch"))
        if asked is not self.ended_by or one is None or other is None:
            return end, end
        return (one, other) if meant == self.means_end else (other, one)

    def _tells_of_the_end(self, place: int) -> bool:
        """Whether a truth value is what it was, or true in the trip that ends the loop."""
        start, state, end = self.loop.inputs[2 + place], self.body.inputs[2 + place], self.body.outputs[1 + place]
        node, ended = end.producer(), (self.ended_by, self.means_end)
        if node is not None and node.op_type == "Or" and state in node.inputs:
            return ended in [_asked(each) for each in node.inputs if each is not state]
        if _asked(end) == ended:
            first = ir.convenience.get_const_tensor(start) if start is not None else None
            return first is not None and not first.numpy().any()
        last, others = self._chosen(end)
        return _copied(others) is state and is_true(last)

    def _change(self, value: ir.Value, state: ir.Value) -> _Change | None:
        value = _copied(value)
        node = value.producer()
        if value is state:
            return _Change()
        if node is not None and node.op_type == "Add" and is_onnx(node) and state in node.inputs:
            other = next((each for each in node.inputs if each is not state), None)
            more = constant_number(other)
            return _Change(more=more) if more is not None and state.dtype == INT64 and _is_number(state) else None
        # What is in an arm, or in a body, is that graph's; a constant is the model's.
        if (
            value.is_initializer()
            or (node is not None and node.graph is not self.body)
            or not self._is_whole(value, state)
        ):
            return None
        needed = needed_for(self.body, [value], ())
        free = not any(each in set(self.body.inputs[1:]) for node in needed for each in node.inputs)
        known = {} if not self.is_some or self.length is None else {self.body.inputs[0]: self.length}
        return _Change(value) if free and all(is_pure(each) and never_fails(each, known) for each in needed) else None

    def _is_whole(self, value: ir.Value, state: ir.Value) -> bool:
        """Whether a value may be chosen in place of a state."""
        return state.dtype in _CHOSEN and same_shape(value, state) and value not in self.body.inputs[1:]

    # ---- what takes the place of the loop

    def _values(self, changes: list[tuple[_Change, _Change]]) -> list[ir.Value]:
        """Record the results of the loop."""
        stops = self.rows[self.ended_by]
        stops = op("Cast", stops if self.means_end else op("Not", stops), to=int(UINT8), dtype=UINT8)
        one = op("Constant", value=ir.tensor([1], dtype=UINT8), dtype=UINT8)
        first = op("ArgMax", op("Concat", stops, one, axis=0), axis=0, keepdims=0)
        first.shape = ir.Shape([])
        # Where there may be no trip, a row stands for none.
        self.first = first if self.is_some else op("Min", first, op("Max", self.trips, 0))
        self.ended = op("Less", self.first, self.trips)
        self.first.shape = self.ended.shape = ir.Shape([])
        return [self._value(place, *change) for place, change in enumerate(changes)]

    def _value(self, place: int, last: _Change, others: _Change) -> ir.Value:
        """What a state is after the loop."""
        start = self.loop.inputs[2 + place]
        assert start is not None
        if last.value is not None:
            if start.dtype == BOOL:
                return op("Or", start, self.ended)
            return op("Where", self.ended, self._at_the_end(last.value), start)
        found: ir.Value = start
        for more, count in ((others.more, self.first), (last.more, op("Cast", self.ended, to=int(INT64), dtype=INT64))):
            if more:
                number = count if more == 1 else op("Mul", count, more)
                found = number if constant_number(found) == 0 else op("Add", found, number)
        return op("Identity", found) if found is start or found is self.first else found

    def _at_the_end(self, value: ir.Value) -> ir.Value:
        """A value of the body in the trip that ends the loop; of some other trip, where none does."""
        last = op("Min", self.first, op("Sub", self.trips, 1)) if self.is_some else self.first
        last.shape = ir.Shape([])
        known: dict[ir.Value, ir.Value] = {self.body.inputs[0]: last}
        nodes = needed_for(self.body, [value], ())
        recorder().nodes.extend(copies(nodes, known))
        return known.get(value, value)


def _asked(value: ir.Value | None) -> tuple[ir.Value, bool]:
    """What a truth value is a copy of, or the contrary of, and which."""
    assert value is not None
    meant = True
    while (node := value.producer()) is not None and is_onnx(node):
        operands = set(node.inputs)
        if node.op_type not in _COPYING and not (node.op_type in {"And", "Or"} and len(operands) == 1):
            break
        operand = node.inputs[0]
        if operand is None or not _is_number(operand):
            break
        value, meant = operand, meant != (node.op_type == "Not")
    return value, meant


def _copied(value: ir.Value) -> ir.Value:
    """What a value is a copy of."""
    node = value.producer()
    if node is None or node.op_type != "Identity" or not is_onnx(node) or node.inputs[0] is None:
        return value
    return _copied(node.inputs[0])


def _is_number(value: ir.Value) -> bool:
    return value.shape is not None and not len(value.shape)
