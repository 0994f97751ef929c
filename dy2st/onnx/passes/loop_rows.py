"""The rows that a loop goes over: what a value of its body is in each trip, as one tensor.

A row of a tensor that is taken by the number of the trip, from the first one to the last or back, is that tensor,
turned round or transposed as it needs; what is computed from such rows is computed from the tensors
(:mod:`dy2st.onnx.passes.row_forms`), or else by a loop that does nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from dy2st.onnx.building import BOOL, INT64, constant, loop, op, recorder
from dy2st.onnx.passes.graph_facts import is_number, is_onnx
from dy2st.onnx.passes.loop_sizes import constant_number, length_of_dimension, length_of_number
from dy2st.onnx.passes.node_copies import Operands, copies, needed_for, own
from dy2st.onnx.passes.row_forms import in_front, rows_of


class LoopRows:
    """The rows of a ``Loop`` that makes all of its trips.

    ``operands`` are those that nodes of its body read where they are copied.
    """

    def __init__(self, node: ir.Node, operands: Operands = own) -> None:
        self.node, self.operands = node, operands
        self.body: ir.Graph = node.attributes["body"].as_graph()
        self.trips = node.inputs[0]
        self.step = self.body.inputs[0]

    def stacks(self, values: Sequence[ir.Value]) -> list[ir.Value]:
        """What values of the body are in all trips, which no state has a part in."""
        found = {self.step: op("Range", 0, self.trips, 1, dtype=INT64)}
        found[self.step].shape = ir.Shape([None])
        for node in needed_for(self.body, values, ()):
            whole = self._whole(node)
            if whole is not None:
                found[node.outputs[0]] = whole
            elif any(value in found for value in node.inputs):
                inside = [value for value in node.inputs if value is not None and value.graph is self.body]
                stacks = rows_of(node, found) if all(value in found for value in inside) else None
                found.update(zip(node.outputs, stacks or (), strict=False))
        looped = [value for value in values if value not in found]
        if looped:
            stacks = self.over(looped, {}, [], needed_for(self.body, looped, ()))
            for value, stack in zip(looped, stacks, strict=True):
                assert value.shape is not None
                stack.shape = ir.Shape([None, *value.shape])
                found[value] = stack
        return [found[value] for value in values]

    def _whole(self, node: ir.Node) -> ir.Value | None:
        """The rows of a tensor, of which a node takes one in each trip: from the first to the last, or back."""
        data, axis = node.inputs[0], node.attributes["axis"].as_int() if "axis" in node.attributes else 0
        if node.op_type != "Gather" or data is None or data.shape is None or data.graph is self.body:
            return None
        if not is_number(node.inputs[1]):
            return None
        length, trips = length_of_dimension(data, axis), length_of_number(self.trips)
        order, first = self.order(node.inputs[1]), self._offset(node.inputs[1])
        if length is None or length.plus(-first) != trips or (order is None and not first):
            return None
        data = in_front(data, axis) if axis % len(data.shape) else data
        whole = data
        if first:
            whole = op("Slice", whole, [first], [2**63 - 1], [0])
        elif order == -1:
            whole = turned_round(whole)
        if whole is not data and data.shape is not None:
            whole.shape = ir.Shape([None, *data.shape[1:]])
        return whole

    def _offset(self, index: ir.Value | None) -> int:
        """What is added to the number of the trip; 0 if it is something else."""
        node = index.producer() if index is not None else None
        if node is None or node.op_type != "Add" or self.step not in node.inputs:
            return 0
        return max(next((number for each in node.inputs if (number := constant_number(each)) is not None), 0), 0)

    def order(self, index: ir.Value | None) -> int | None:
        """1 for the number of the trip, -1 for what goes from the last one to 0; None for another index."""
        if index is self.step:
            return 1
        node, last = index.producer() if index is not None else None, length_of_number(self.trips)
        if node is None or last is None or not is_onnx(node) or len(node.inputs) != 2:
            return None
        left, right = node.inputs
        if node.op_type == "Add":
            right = next((each for each in node.inputs if self._is_negated(each)), None)
            left = next((each for each in node.inputs if each is not right), None)
        elif node.op_type != "Sub" or right is not self.step:
            return None
        return -1 if right is not None and length_of_number(left) == last.plus(-1) else None

    def _is_negated(self, value: ir.Value | None) -> bool:
        """Whether a value is the negated number of the trip."""
        node = value.producer() if value is not None else None
        if node is None or self.step not in node.inputs:
            return False
        return node.op_type == "Neg" or (
            node.op_type == "Mul" and any(constant_number(each) == -1 for each in node.inputs)
        )

    def over(
        self,
        results: Sequence[ir.Value],
        known: dict[ir.Value, ir.Value],
        others: Sequence[int],
        nodes: Sequence[ir.Node],
        trips: ir.Value | None = None,
    ) -> Sequence[ir.Value]:
        """A loop over nodes of the body: the other states at the end, and the stacked results.

        ``known`` are stacks of what the nodes read of the cell.
        """
        starts = [start for place in others if (start := self.node.inputs[2 + place]) is not None]

        def inner(step: ir.Value, states: Sequence[ir.Value]) -> Any:
            given = {self.step: step}
            for place, state in zip(others, states, strict=True):
                value = self.body.inputs[2 + place]
                state.shape = value.shape
                given[value] = state
            for value, stack in known.items():
                row = op("Gather", stack, step, axis=0)
                row.name, row.type, row.shape = f"{value.name}_read", value.type, value.shape
                given[value] = row
            recorder().nodes.extend(copies(nodes, given, self.operands))
            ends = [given.get(value, value) for value in (*(self.body.outputs[1 + p] for p in others), *results)]
            # Each result has a node of its own.
            copied = []
            for value in ends:
                made = op("Identity", value)
                made.type, made.shape = value.type, value.shape
                copied.append(made)
            return None, copied[: len(others)], copied[len(others) :]

        # onnxruntime wants the condition named where there is no state.
        going = None if starts else constant(True, BOOL)
        found = loop(self.trips if trips is None else trips, starts, inner, going)
        for place, value in zip(others, found, strict=False):
            value.type = self.body.outputs[1 + place].type
        return found

    def goes_back(self, value: ir.Value) -> bool:
        """Whether a value of the body is computed from the number of the trip counted from the end."""
        return any(self.order(each) == -1 for node in needed_for(self.body, [value], ()) for each in node.inputs)


def turned_round(stack: ir.Value) -> ir.Value:
    """The rows of a tensor from the last to the first."""
    return op("Slice", stack, [-1], [-(2**63)], [0], [-1])
