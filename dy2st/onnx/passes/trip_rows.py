"""What the body of a loop computes of the number of its trip alone: for all trips at once, as rows.

So are the rows of a tensor that are taken one in each trip, in order, and what is made of them; and a state that is
what such a value was in the trip before::

    last = state                        # of the trip before: x[i - 1], and first the state before the loop
    row = Gather(x, i)                  # x: [time, batch]
    difference = Sub(row, last)

    lasts = Slice(Concat(Unsqueeze(start), x), up to -1)
    differences = Sub(x, lasts)
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import onnx_ir as ir

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, INT32, INT64, op, recorder
from dy2st.onnx.passes.graph_facts import is_number
from dy2st.onnx.passes.index_tests import tested_index
from dy2st.onnx.passes.loop_invariants import never_fails
from dy2st.onnx.passes.loop_sizes import Length, constant_number, length_of_dimension, length_of_number
from dy2st.onnx.passes.node_constructs import ALL_TRIPS, NAMESPACE
from dy2st.onnx.passes.repeated_nodes import is_pure
from dy2st.onnx.passes.row_forms import in_front, rows_of

# What onnxruntime pads.
_PADDED = frozenset((FLOAT, DOUBLE, INT32, INT64, BOOL))
# What is no place in a table.
_NO_PLACES = frozenset((FLOAT, DOUBLE, BOOL))
_KEEPING_ZEROS = frozenset(("Cast", "Squeeze", "Unsqueeze"))


class TripRows:
    """One loop, and the rows that are found for the values of its body."""

    def __init__(self, loop: ir.Node, opset: int, filled: AbstractSet[str]) -> None:
        self.loop, self.opset, self.filled = loop, opset, filled
        self.body: ir.Graph = loop.attributes["body"].as_graph()
        self.trips: Any = loop.inputs[0]
        self.length = length_of_number(self.trips)
        self.is_some = self.length is not None and self.is_filled(self.length)
        self.rows: dict[ir.Value, ir.Value] = {}
        self.moved: list[ir.Node] = []
        # Of which the row that stands for none is known to be of zeros.
        self.zeros: set[ir.Value] = set()

    def find_rows(self) -> None:
        """Record, for what depends on the number of the trip alone, its values in all trips.

        So do states that are what such a value was in the trip before.
        """
        step = self.body.inputs[0]
        self.rows, self.moved, self.zeros = {step: self._numbers()}, [], {step}
        self.delayed: set[ir.Value] = set()
        while True:
            self._follow_rows()
            states = zip(self.loop.inputs[2:], self.body.inputs[2:], self.body.outputs[1:], strict=False)
            found = {
                state: _delayed(start, self.rows[end])
                for start, state, end in states
                if end in self.rows and state not in self.rows and start is not None and _dims(start) == _dims(end)
            }
            if not found:
                return
            self.rows.update(found)
            self.delayed.update(found)

    def _follow_rows(self) -> None:
        """Record the rows of what is made of those that there are."""
        inside = {id(value) for value in self.body.inputs}
        for node in self.body:
            operands = [value for value in node.inputs if value is not None]
            free = all(id(value) not in inside or value in self.rows for value in operands)
            taken = [value for value in operands if value in self.rows]
            found: Sequence[ir.Value] | None = None
            if node not in self.moved and free and taken and is_pure(node):
                base = self._sliced(node)
                if base is not None:
                    found = [base]
                    if not self.is_some and made_by(base, "Pad"):
                        self.zeros.add(node.outputs[0])
                elif self.is_some or never_fails(node) or self._takes_first(node):
                    before = len(recorder().nodes)
                    found = rows_of(node, self.rows)
                    for made in recorder().nodes[before:]:
                        made.metadata_props.update(node.metadata_props)
                        made.metadata_props[ALL_TRIPS] = self.loop.metadata_props.get(NAMESPACE, "")
                keeps = taken == operands[:1] and taken[0] in self.zeros and node.op_type in _KEEPING_ZEROS
                if keeps or tested_index(node) in self.zeros:
                    self.zeros.add(node.outputs[0])
            if found is not None:
                self.rows.update(zip(node.outputs, found, strict=True))
                self.moved.append(node)
            inside.update(id(out) for out in node.outputs)

    def _takes_first(self, node: ir.Node) -> bool:
        """Whether what is looked up for the row that stands for none is the first entry of a table that has one."""
        table, place = node.inputs[:2] if node.op_type == "Gather" else (None, None)
        if table is None or table.shape is None or not len(table.shape) or place not in self.zeros:
            return False
        return isinstance(table.shape[0], int) and table.shape[0] > 0

    def _numbers(self) -> ir.Value:
        trips = self.trips if self.is_some else op("Max", self.trips, 1)
        found = op("Range", 0, trips, 1, dtype=INT64)
        found.shape = ir.Shape([None])
        return found

    def _sliced(self, node: ir.Node) -> ir.Value | None:
        """The rows of a tensor from outside that are taken one in each trip, in order."""
        data = node.inputs[0]
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
        if node.op_type != "Gather" or data is None or data.shape is None or data in self.rows:
            return None
        first = self._offset(node.inputs[1])
        length = length_of_dimension(data, axis)
        if first is None or length is None or self.length is None or length.name != self.length.name:
            return None
        behind = length.more - first - self.length.more
        if behind < 0:
            return None
        if not self.is_some and data.dtype not in _PADDED:
            return None
        if axis:
            data = in_front(data, axis)
        assert data.shape is not None
        begin: Any = [first]
        has_row = bool(first) and not behind and data.dtype in _NO_PLACES and self.is_filled(length)
        if has_row and not self.is_some:
            # The last one, where the loop would begin behind it.
            last = op("Add", self.trips, first - 1) if first > 1 else self.trips
            begin = op("Reshape", op("Min", last, first), [1])
        rows = op("Slice", data, begin, [-behind or 2**63 - 1], [0]) if first or behind else data
        if not self.is_some and not has_row:
            lacking = op("Cast", op("LessOrEqual", self.trips, 0), to=int(INT64), dtype=INT64)
            dims = len(data.shape)
            ends = op("Reshape", lacking, [1])
            ends.shape = ir.Shape([1])
            front, back = [0] * dims, [0] * (dims - 1)
            pads = op("Concat", front, ends, back, axis=0) if back else op("Concat", front, ends, axis=0)
            pads.shape = ir.Shape([2 * dims])
            rows = op("Pad", rows, pads)
        if rows is not data:
            rows.type, rows.shape = data.type, ir.Shape([None, *data.shape[1:]])
        return rows

    def is_filled(self, length: Length) -> bool:
        """Whether a dimension has one row at least."""
        return length.is_some or (length.more >= 0 and length.name in self.filled)

    def _offset(self, place: ir.Value | None) -> int | None:
        """What is added to the number of the trip; None for another place, and for a vector of one place."""
        step = self.body.inputs[0]
        if place is step:
            return 0
        node = place.producer() if place is not None else None
        if node is None or node.op_type != "Add" or step not in node.inputs or not is_number(place):
            return None
        other = node.inputs[1] if node.inputs[0] is step else node.inputs[0]
        number = constant_number(other)
        return number if number is not None and number >= 0 else None


def _delayed(start: ir.Value, rows: ir.Value) -> ir.Value:
    """The rows of a state that in each trip but the first is what a row was in the trip before."""
    found = op("Slice", op("Concat", op("Unsqueeze", start, [0]), rows, axis=0), [0], [-1], [0])
    found.shape = rows.shape
    return found


def _dims(value: ir.Value) -> int | None:
    return None if value.shape is None else len(value.shape)


def made_by(value: ir.Value, kind: str) -> bool:
    """Whether a value is made by an operator of a kind."""
    node = value.producer()
    return node is not None and node.op_type == kind
