"""A tensor of which each trip writes the next row and reads rows written shortly before: those rows are carried.

Before, for ``y[t] = a * y[t - 1] + x[t]`` from ``t = 1`` on::

    y_end = Loop(trips, "", y) <body = step (i, go, before) {
        place = Add(i, 1)
        last = Gather(before, i)
        next = ... last ...
        after = ScatterElements<axis = 0>(before, Expand(place, ...), Unsqueeze(next, [0]))
    }>

After::

    first = Gather(y, 0)
    last_row, rows = Loop(trips, "", first) <body = step (i, go, last) {
        next = ... last ...
        row = Identity(next)
    }>
    y_end = Concat<axis = 0>(Slice(y, [0], [1]), rows)

The whole tensor is copied in each trip of the first loop, and not at all in the second. Rows may go forward or back,
and be read from up to ``FARTHEST`` trips ago. A row that no trip has written yet is that of the tensor before the loop.
All places have to be known to be inside of it: a ``Concat`` would not fail where the write does.

Source: scalar replacement, Callahan, Carr, Kennedy, "Improving Register Allocation for Subscripted Variables", 1990.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, INT32, INT64, constant, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_size
from dy2st.onnx.passes.linear_indices import LinearIndex, linear_index
from dy2st.onnx.passes.loop_sizes import Length, length_of_dimension, length_of_number, makes_all_trips
from dy2st.onnx.passes.loop_states import results_with, stack_in_place_of

# From so many trips ago a row is carried.
FARTHEST = 4
_END = 2**63 - 1
# What onnxruntime pads.
_PADDED = frozenset((FLOAT, DOUBLE, INT32, INT64, BOOL))


def forward_rows(model: ir.Model, opset: int) -> None:
    """Carry such rows; in place, inner loops first."""
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            loop: ir.Node | None = node
            while loop is not None and loop.op_type == "Loop" and is_onnx(loop):
                loop = _forward(loop, opset)


def _forward(loop: ir.Node, opset: int) -> ir.Node | None:
    """The loop that takes the place of one; None if no state of it is such a tensor."""
    for place in range(len(loop.inputs) - 2):
        found = _found(loop, place)
        if found is not None:
            return _Forwarding(loop, place, found, opset).apply()
    return None


@dataclass
class _Rows:
    """What a body does with a state: the write, its index, and what it reads, by how many trips ago it was written."""

    write: ir.Node
    axis: int
    index: LinearIndex
    trips: Length
    size: Length
    # What reads a row that was written so many trips ago: 0 is this trip's own, and less what none has written yet.
    reads: dict[int, list[ir.Node]] = field(default_factory=dict)

    @property
    def farthest(self) -> int:
        return max((ago for ago in self.reads if ago > 0), default=0)

    def place_before(self, ago: int) -> tuple[int, bool]:
        """The place that would be written so many trips before the first one, and whether it is there without a trip.

        It is counted from the end for rows that go back.
        """
        base, size = self.index.base, self.size.more
        place = base.more - ago if self.index.sign == 1 else base.more + ago - size
        return place, size > place if place >= 0 else size >= -place


def _found(loop: ir.Node, place: int) -> _Rows | None:
    """The rows of a state, if each trip writes one and all of its places are known."""
    body = loop.attributes["body"].as_graph()
    start, state, end = loop.inputs[2 + place], body.inputs[2 + place], body.outputs[1 + place]
    write, trips = end.producer(), length_of_number(loop.inputs[0])
    if start is None or start.shape is None or state.shape is None or write is None or trips is None:
        return None
    axis = _written_axis(write, state)
    size = None if axis is None else length_of_dimension(start, axis)
    index = None if axis is None else linear_index(write.inputs[1], body.inputs[0])
    if axis is None or size is None or index is None or not index.is_within(trips, size):
        return None
    if sum(value is end for value in body.outputs) != 1 or state.is_graph_output():
        return None
    found = _Rows(write, axis, index, trips, size)
    for value in (state, end):
        for use in value.uses():
            ago = _trips_ago(use.node, use.idx, body, found)
            if use.node is write and use.idx == 0:
                continue
            # After the write its row is there, too, and before it the one that the tensor had.
            if ago is None or ago > FARTHEST:
                return None
            key = ago if value is end or ago > 0 else min(ago, 0) - 1
            found.reads.setdefault(key, []).append(use.node)
    return found if _is_possible(loop, start, found) else None


def _written_axis(write: ir.Node, state: ir.Value) -> int | None:
    """Along which axis a node writes one whole row to a state."""
    if write.op_type != "ScatterElements" or not is_onnx(write) or write.inputs[0] is not state:
        return None
    reduction = write.attributes.get("reduction")
    updates = write.inputs[2]
    if updates is None or updates.shape is None or state.shape is None or len(updates.shape) != len(state.shape):
        return None
    axis = (write.attributes["axis"].as_int() if "axis" in write.attributes else 0) % len(state.shape)
    others = [d for d in range(len(state.shape)) if d != axis]
    whole = updates.shape[axis] == 1 and all(same_size(updates.shape[d], state.shape[d]) for d in others)
    return axis if whole and (reduction is None or reduction.as_string() == "none") else None


def _added_axis(node: ir.Node) -> int | None:
    """Along which axis a node gives its operand a dimension of one element."""
    axes = constant_integers(node.inputs[1]) if node.op_type == "Unsqueeze" and is_onnx(node) else None
    shape = node.outputs[0].shape
    return axes[0] % len(shape) if axes is not None and len(axes) == 1 and shape is not None else None


def _trips_ago(node: ir.Node, operand: int, body: ir.Graph, rows: _Rows) -> int | None:
    """In how many trips before now the row was written that a node reads; None if it is not known to be one."""
    data, index = node.inputs[:2] if node.op_type == "Gather" and is_onnx(node) else (None, None)
    if data is None or index is None or operand or node.graph is not body or index.shape is None or len(index.shape):
        return None
    assert data.shape is not None
    axis = (node.attributes["axis"].as_int() if "axis" in node.attributes else 0) % len(data.shape)
    place = linear_index(index, body.inputs[0])
    return None if axis != rows.axis or place is None else rows.index.ahead_of(place)


def _is_possible(loop: ir.Node, start: ir.Value, rows: _Rows) -> bool:
    """Whether the rows before the loop can be told, and what it writes be put among them."""
    base, dtype = rows.index.base, start.dtype
    if dtype not in _PADDED and not all(rows.place_before(ago)[1] for ago in range(1, rows.farthest + 1)):
        return False
    if rows.index.sign == 1:
        return base.name is None and base.more >= rows.farthest
    first = rows.size.more - base.more
    return makes_all_trips(loop) and rows.size.name == base.name and first > rows.farthest


class _Forwarding:
    """One state of a loop that becomes the rows that are read of it."""

    def __init__(self, loop: ir.Node, place: int, rows: _Rows, opset: int) -> None:
        self.loop, self.place, self.rows, self.opset = loop, place, rows, opset
        self.body: ir.Graph = loop.attributes["body"].as_graph()
        start = loop.inputs[2 + place]
        assert start is not None
        self.start: ir.Value = start
        shape = self.body.inputs[2 + place].shape
        assert shape is not None
        self.sizes = [size for d, size in enumerate(shape) if d != rows.axis]

    def apply(self) -> ir.Node:
        """Write the loop anew; gives it."""
        loop, place = self.loop, self.place
        with recording(self.opset) as made:
            firsts = [self._first(ago) for ago in range(1, self.rows.farthest + 1)]
            before, ends, told = self._write_body()
            new = stack_in_place_of(loop, place, list(zip(firsts, before, ends, strict=True)), told)
            whole = self._whole(new.outputs[-1])
        put_in_place(loop, made.nodes, results_with(loop, new, place, len(firsts), whole))
        return new

    def _first(self, ago: int) -> ir.Value:
        """The row that was written so many trips before the first one: that of the tensor before the loop."""
        rows = self.rows
        place, is_there = rows.place_before(ago)
        data: ir.Value = self.start
        if not is_there:
            # There is no trip where there is no such row.
            data = op("Slice", data, [place], [place + 1 if place != -1 else _END], [rows.axis])
            dims = len(self.sizes) + 1
            data = op("Pad", data, [0] * dims + [int(d == rows.axis) for d in range(dims)])
            place = 0
        found = op("Gather", data, constant(place), axis=rows.axis)
        found.type, found.shape = self.start.type, ir.Shape(self.sizes)
        return found

    def _write_body(self) -> tuple[list[ir.Value], list[ir.Value], ir.Value]:
        """The rows that are carried, before and after a trip, and the one that was written, to be stacked."""
        body, write, rows = self.body, self.rows.write, self.rows
        state = body.inputs[2 + self.place]
        updates = write.inputs[2]
        assert updates is not None
        before = [self._value(f"{state.name}_{ago}_ago") for ago in range(1, rows.farthest + 1)]
        for ago, nodes in rows.reads.items():
            for node in nodes:
                if ago < 0:
                    node.replace_input_with(0, self.start)
                elif ago > 0:
                    self._read(node, before[ago - 1])
        with recording(self.opset) as made:
            source = updates.producer()
            row = source.inputs[0] if source is not None and _added_axis(source) == rows.axis else None
            row = op("Squeeze", updates, [rows.axis]) if row is None else row
            own = row.producer() is not None and row.graph is body and not row.is_graph_output()
            ends = [row if own and each is row else op("Identity", each) for each in [row, *before][: rows.farthest]]
            told = op("Identity", row)
        for value in (row, *ends, told):
            value.type, value.shape = self.start.type, ir.Shape(self.sizes)
        self._name(made.nodes)
        body.insert_after(write, made.nodes)
        for node in rows.reads.get(0, ()):
            self._read(node, row)
        return before, ends, told

    def _read(self, node: ir.Node, value: ir.Value) -> None:
        """Let a row that a node reads be a value."""
        out = node.outputs[0]
        out.replace_all_uses_with(value)
        if out.is_graph_output():
            with recording(self.opset) as made:
                copy = op("Identity", value)
            copy.type, copy.shape = out.type, out.shape
            put_in_place(node, made.nodes, [copy])
        else:
            self.body.remove(node, safe=True)

    def _value(self, name: str) -> ir.Value:
        return ir.Value(name=name, type=self.start.type, shape=ir.Shape(self.sizes))

    def _name(self, nodes: list[ir.Node]) -> None:
        for count, each in enumerate(nodes):
            each.outputs[0].name = f"{self.rows.write.outputs[0].name}_row_{count}"
            each.name = f"node_{each.outputs[0].name}"
            each.metadata_props.update(self.rows.write.metadata_props)

    def _whole(self, stacked: ir.Value) -> ir.Value:
        """The tensor with the rows that were written."""
        rows, axis, written = self.rows, self.rows.axis, stacked
        count = op("Shape", stacked, start=0, end=1)
        if not all(isinstance(size, int) for size in self.sizes):
            # Without a trip the loop can't know the sizes.
            others = [op("Shape", self.start, start=d, end=d + 1) for d in range(len(self.sizes) + 1) if d != axis]
            written = op("Reshape", stacked, op("Concat", count, *others, axis=0), allowzero=1)
            written.shape = ir.Shape([_named(rows.trips), *self.sizes])
        if rows.index.sign == -1:
            written = op("Slice", written, [-1], [-(2**63)], [0], [-1])
        if axis:
            written = op("Transpose", written, perm=[*range(1, axis + 1), 0, *range(axis + 1, len(self.sizes) + 1)])
        least = self._least()
        parts = [op("Slice", self.start, [0], [least], [axis])] if least else []
        parts.append(written)
        if not self._is_last():
            parts.append(op("Slice", self.start, op("Add", count, [least]) if least else count, [_END], [axis]))
        return op("Concat", *parts, axis=axis) if len(parts) > 1 else op("Identity", written)

    def _least(self) -> int:
        """The least place that is written."""
        base = self.rows.index.base
        return base.more if self.rows.index.sign == 1 else base.more - self.rows.trips.more + 1

    def _is_last(self) -> bool:
        """Whether nothing lies behind the greatest place that is written."""
        rows = self.rows
        end = rows.trips.plus(self._least())
        return makes_all_trips(self.loop) and end == rows.size


def _named(length: Length) -> int | ir.SymbolicDim:
    """A length as a size."""
    if length.name is None:
        return length.more
    more = f" {'+' if length.more > 0 else '-'} {abs(length.more)}" if length.more else ""
    return ir.SymbolicDim(f"{length.name}{more}")
