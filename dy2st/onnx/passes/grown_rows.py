"""A tensor that each trip makes longer by as many rows, and of which a trip asks for no more than its size.

Before, for ``ids = torch.cat([ids, token])``::

    ids_end = Loop(trips, "", ids) <body = step (i, go, before) {
        size = Shape(before)
        token = ...
        after = Concat<axis = 0>(before, token)                 # token: [1]
    }>

After::

    first = Shape(ids)
    tokens = Loop(trips, "") <body = step (i, go) {
        size = Add(first, i)
        token = ...
    }>
    ids_end = Concat<axis = 0>(ids, Reshape(tokens, [-1]))

The first loop copies all rows in each trip, and the second none. The last row, where one is added in each trip and
there is one before the loop, is carried.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from dy2st.onnx.building import constant, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.loop_sizes import length_of_dimension
from dy2st.onnx.passes.loop_states import results_with, stack_in_place_of


def stack_grown_rows(model: ir.Model, opset: int) -> None:
    """Stack such rows; in place, inner loops first."""
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            loop: ir.Node | None = node
            while loop is not None and loop.op_type == "Loop" and is_onnx(loop):
                loop = _stack(loop, opset)


def _stack(loop: ir.Node, opset: int) -> ir.Node | None:
    """The loop that takes the place of one; None if no state of it only grows."""
    for place in range(len(loop.inputs) - 2):
        found = _found(loop, place)
        if found is not None:
            return found.apply(opset)
    return None


@dataclass
class _Grown:
    """A state that grows by ``more`` rows along ``axis``, which ``join`` adds to it in each trip."""

    loop: ir.Node
    place: int
    start: ir.Value
    state: ir.Value
    join: ir.Node
    axis: int
    more: int
    added: ir.Value

    def apply(self, opset: int) -> ir.Node:
        """Write the loop anew; gives it."""
        body = self.loop.attributes["body"].as_graph()
        lasts = [use.node for use in self.state.uses() if use.node.op_type == "Gather"]
        with recording(opset) as made:
            self._sizes(opset)
            with recording(opset) as inner:
                told = op("Identity", self.added)
                last = op("Squeeze", self.added, [self.axis]) if lasts else None
            told.type, told.shape = self.added.type, self.added.shape
            states = []
            if last is not None:
                sizes = ir.Shape([size for d, size in enumerate(self.added.shape or ()) if d != self.axis])
                first = op("Gather", self.start, constant(-1), axis=self.axis)
                inside = ir.Value(name=f"{self.state.name}_last", type=self.start.type, shape=sizes)
                for value in (first, last):
                    value.type, value.shape = self.start.type, sizes
                states.append((first, inside, last))
                for node in lasts:
                    node.outputs[0].replace_all_uses_with(inside)
                    body.remove(node, safe=True)
            for count, node in enumerate(inner.nodes):
                node.outputs[0].name = f"{self.join.outputs[0].name}_added_{count}"
                node.name = f"node_{node.outputs[0].name}"
                node.metadata_props.update(self.join.metadata_props)
            body.insert_before(self.join, inner.nodes)
            new = stack_in_place_of(self.loop, self.place, states, told)
            whole = op("Concat", self.start, self._joined(new.outputs[-1]), axis=self.axis)
        put_in_place(self.loop, made.nodes, results_with(self.loop, new, self.place, len(states), whole))
        return new

    def _sizes(self, opset: int) -> None:
        """Tell the sizes in the body by the number of the trip."""
        body = self.loop.attributes["body"].as_graph()
        for node in [use.node for use in self.state.uses() if use.node.op_type == "Shape"]:
            if not _covers(node, self.axis):
                node.replace_input_with(0, self.start)
                continue
            size = self.start.shape[self.axis] if self.start.shape is not None else None
            first = (
                constant([size])
                if isinstance(size, int)
                else op("Shape", self.start, start=self.axis, end=self.axis + 1)
            )
            first.shape = ir.Shape([1])
            with recording(opset) as made:
                grown = op("Mul", body.inputs[0], constant(self.more)) if self.more > 1 else body.inputs[0]
                found = op("Add", first, grown)
            found.shape = ir.Shape([1])
            put_in_place(node, made.nodes, [found])

    def _joined(self, stacked: ir.Value) -> ir.Value:
        """All rows that were added, as one tensor."""
        axis, shape = self.axis, self.added.shape
        assert shape is not None
        if axis:
            stacked = op("Transpose", stacked, perm=[*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)])
        fixed = [size for d, size in enumerate(shape) if d != axis and isinstance(size, int) and size > 0]
        if len(fixed) == len(shape) - 1:
            return op("Reshape", stacked, [*fixed[:axis], -1, *fixed[axis:]])
        # Without a trip the loop can't know the other sizes.
        count = op("Shape", stacked, start=axis, end=axis + 1)
        count = op("Mul", count, [self.more]) if self.more > 1 else count
        parts = [op("Shape", self.start, start=d, end=d + 1) if d != axis else count for d in range(len(shape))]
        return op("Reshape", stacked, op("Concat", *parts, axis=0), allowzero=1)


def _covers(node: ir.Node, axis: int) -> bool:
    """Whether a ``Shape`` of some dimensions has that one."""
    begin, end = _range(node)
    return begin <= axis < end


def _range(node: ir.Node) -> tuple[int, int]:
    dims = len(node.inputs[0].shape or ()) if node.inputs[0] is not None else 0
    given = [node.attributes[name].as_int() if name in node.attributes else None for name in ("start", "end")]
    begin, end = (other if each is None else each for each, other in zip(given, (0, dims), strict=True))
    begin, end = (min(each % dims if -dims <= each < 0 else each, dims) for each in (begin, end))
    return begin, end


def _found(loop: ir.Node, place: int) -> _Grown | None:
    """A state that grows, of which nothing but sizes and the last row is read."""
    body = loop.attributes["body"].as_graph()
    start, state, end = loop.inputs[2 + place], body.inputs[2 + place], body.outputs[1 + place]
    join = end.producer()
    if start is None or start.shape is None or state.shape is None or join is None or state.is_graph_output():
        return None
    if join.op_type != "Concat" or not is_onnx(join) or len(join.inputs) != 2 or join.inputs[0] is not state:
        return None
    added, axis = join.inputs[1], join.attributes["axis"].as_int() % len(state.shape)
    more = added.shape[axis] if added is not None and added.shape is not None else None
    if added is None or added is state or not isinstance(more, int) or more < 1 or end.uses():
        return None
    if sum(each is end for each in body.outputs) != 1:
        return None
    found = _Grown(loop, place, start, state, join, axis, more, added)
    return found if all(use.node is join or _is_told(use.node, use.idx, found) for use in state.uses()) else None


def _is_told(node: ir.Node, operand: int, grown: _Grown) -> bool:
    """Whether what a node reads of a state can be told without it."""
    body = grown.loop.attributes["body"].as_graph()
    if node.graph is not body or operand or not is_onnx(node):
        return False
    if node.op_type == "Shape":
        begin, end = _range(node)
        return not begin <= grown.axis < end or end - begin == 1
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    index, length = node.inputs[1] if len(node.inputs) == 2 else None, length_of_dimension(grown.start, grown.axis)
    return (
        node.op_type == "Gather"
        and axis % len(grown.start.shape or (0,)) == grown.axis
        and constant_integers(index) == [-1]
        and index is not None
        and index.shape is not None
        and not len(index.shape)
        and not node.outputs[0].is_graph_output()
        and grown.more == 1
        and length is not None
        and length.more >= 1
    )
