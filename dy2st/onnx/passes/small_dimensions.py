"""A last dimension of a few elements, such as that of points or corners, stands in front while tensors are stretched.

Before, for boxes ``[n, 4]`` of which each meets each::

    one, other = Unsqueeze(corners, [1]), Unsqueeze(corners, [0])      # [n, 1, 2] and [1, n, 2]
    low = Max(one, other)                                              # [n, n, 2]
    area = ReduceProd<keepdims = 0>(low, [2])

After::

    turned = Transpose<perm = [1, 0]>(corners)
    one, other = Unsqueeze(turned, [2]), Unsqueeze(turned, [1])        # [2, n, 1] and [2, 1, n]
    low = Max(one, other)                                              # [2, n, n]
    area = ReduceProd<keepdims = 0>(low, [0])

onnxruntime 1.31 stretches an operand along runs of the last dimension: two elements at a time there, ``n`` here. So it
is done where something is stretched, and ends in a product or a sum of two or three elements, or in single columns.
What is turned in a loop is there before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, INT64, op, ops, put_before, recording
from dy2st.onnx.passes.expansions import ELEMENTWISE
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_shape
from dy2st.onnx.passes.loop_invariants import LOOPS
from dy2st.onnx.passes.node_constructs import UNUSUAL

# A longer run is no small one.
MOST = 4
# Of so many parts onnxruntime adds, or multiplies, one after the other in any layout: fewer than registers have.
MOST_PARTS = {FLOAT: 3, DOUBLE: 2}
_OF_ONE = frozenset("Abs Ceil Cos Exp Floor Log Neg Reciprocal Relu Round Sigmoid Sign Sin Sqrt Tanh".split())
_ENDS = frozenset(("ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare"))


def put_in_front(model: ir.Model, opset: int) -> None:
    """Compute such tensors so; in place, subgraphs included."""
    _in_graph(model.graph, opset, looped=False)


def _in_graph(graph: ir.Graph, opset: int, *, looped: bool, in_arm: bool = False) -> None:
    for node in list(graph)[::-1]:
        is_loop = node.op_type in LOOPS and is_onnx(node)
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH and attribute.as_graph().name != UNUSUAL:
                # Out of an arm in a loop nothing is moved before the loop.
                _in_graph(attribute.as_graph(), opset, looped=looped or is_loop, in_arm=not is_loop)
        if not (looped and in_arm) and node.graph is graph and _is_elementwise(node):
            _apply(graph, node, opset, looped=looped)


def _apply(graph: ir.Graph, node: ir.Node, opset: int, *, looped: bool) -> None:
    (value,) = node.outputs
    ends = [use.node for use in value.uses()]
    if not ends or value.is_graph_output() or _last(value) is None or not all(_is_end(end, value) for end in ends):
        return
    with recording(opset) as made:
        turning = _Turning(graph, value, looped=looped)
        front = turning.of(value)
        found = [turning.end(end, front) for end in ends] if front is not None else []
    if front is None or not turning.stretches:
        for each in made.nodes:
            for count in range(len(each.inputs)):
                each.replace_input_with(count, None)
        return
    first = min(ends, key=list(graph).index)
    put_before(first, made.nodes, stem=f"{value.name}_front")
    for end, new in zip(ends, found, strict=True):
        new.type, new.shape = end.outputs[0].type, end.outputs[0].shape
        end.outputs[0].replace_all_uses_with(new, replace_graph_outputs=True)
        graph.remove(end, safe=True)
    for each in turning.replaced:
        if each.graph is graph and not any(out.uses() for out in each.outputs):
            graph.remove(each, safe=True)


class _Turning:
    """Values with their last dimension in front, recorded. ``replaced`` are the nodes that made them."""

    def __init__(self, graph: ir.Graph, root: ir.Value, *, looped: bool) -> None:
        self.graph, self.root, self.looped = graph, root, looped
        self.stretches = False
        self.replaced: list[ir.Node] = []
        self.made: dict[ir.Value, ir.Value | None] = {}

    def of(self, value: ir.Value) -> ir.Value | None:
        """A value so; None if that is no gain."""
        if value not in self.made:
            self.made[value] = self._of(value)
        return self.made[value]

    def _of(self, value: ir.Value) -> ir.Value | None:
        node = value.producer()
        own = node is not None and node.graph is self.graph and is_onnx(node)
        if node is not None and own and _is_elementwise(node):
            return self._elementwise(node, value)
        moved = self._moved(node, value) if node is not None and own else None
        if moved is not None:
            return moved
        # In each trip, turning it costs what is gained.
        if own and self.looped:
            return None
        assert value.shape is not None
        dims = len(value.shape)
        return _shaped(op("Transpose", value, perm=[dims - 1, *range(dims - 1)]), value)

    def _elementwise(self, node: ir.Node, value: ir.Value) -> ir.Value | None:
        assert value.shape is not None
        # What else reads it would have it computed twice.
        if value is not self.root and len({use.node for use in value.uses()}) > 1:
            return None
        dims, operands = len(value.shape), []
        for each in node.inputs:
            if each is None or each.shape is None:
                return None
            size = _last(each) if len(each.shape) else 0
            if size is None or (size and size not in (1, _last(value))):
                return None
            front = self.of(each) if size else each
            if front is None:
                return None
            if size and len(each.shape) < dims:
                front = op("Unsqueeze", front, list(range(1, 1 + dims - len(each.shape))))
            operands.append(front)
            self.stretches |= len(each.shape) > 0 and not same_shape(each, value)
        self.replaced.append(node)
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        return _shaped(ops(node.op_type, *operands, dtypes=[value.dtype], **attributes)[0], value)

    def _moved(self, node: ir.Node, value: ir.Value) -> ir.Value | None:
        """What moves elements along other dimensions, moves them there."""
        source, kind = node.inputs[0], node.op_type
        if source is None or source.shape is None or value.shape is None or not _last(source):
            return None
        dims, constants = len(source.shape), [constant_integers(each) for each in node.inputs[1:]]
        found: ir.Value | None = None
        if kind == "Unsqueeze" and constants[0] is not None and dims < len(value.shape):
            axes = [axis % len(value.shape) for axis in constants[0]]
            front = self.of(source) if len(value.shape) - 1 not in axes else None
            found = op("Unsqueeze", front, [axis + 1 for axis in axes]) if front is not None else None
        elif kind == "Gather" and not node.attributes.get_int("axis", 0) and dims == 2:
            front = self.of(source)
            found = op("Gather", front, node.inputs[1], axis=1) if front is not None else None
        elif kind == "Slice" and len(constants) > 2 and constants[2] in ([-1], [dims - 1]) and _last(value):
            front = self.of(source)
            steps = node.inputs[4:] if front is not None else []
            found = op("Slice", front, *node.inputs[1:3], [0], *steps) if front is not None else None
        if found is None:
            return None
        self.replaced.append(node)
        return _shaped(found, value)

    def end(self, node: ir.Node, front: ir.Value) -> ir.Value:
        """What takes the dimension away again."""
        if node.op_type == "Gather":
            return op("Gather", front, node.inputs[1], axis=0)
        return op(node.op_type, front, op("Constant", value=ir.tensor([0]), dtype=INT64), keepdims=0)


def _is_elementwise(node: ir.Node) -> bool:
    known = node.op_type in ELEMENTWISE or node.op_type in _OF_ONE
    return known and is_onnx(node) and len(node.outputs) == 1


def _is_end(node: ir.Node, value: ir.Value) -> bool:
    """Whether a node takes the last dimension away: as a product or a sum along it, or one place of it."""
    if not is_onnx(node) or node.inputs[0] is not value or value.shape is None:
        return False
    dims, given, made = len(value.shape), node.inputs[1] if len(node.inputs) > 1 else None, value.producer()
    axes = constant_integers(given)
    if given is None or axes is None or len(axes) != 1 or value.dtype not in MOST_PARTS:
        return False
    if made is None or node.graph is not made.graph:
        return False
    if node.op_type == "Gather":
        one = given.shape is not None and not len(given.shape)
        return one and node.attributes.get_int("axis", 0) % dims == dims - 1
    few = (_last(value) or MOST) <= MOST_PARTS[value.dtype] and not node.attributes.get_int("keepdims", 1)
    return node.op_type in _ENDS and axes[0] % dims == dims - 1 and few


def _last(value: ir.Value) -> int | None:
    """The size of the last dimension, if it is a small one behind others."""
    if value.shape is None or not len(value.shape):
        return None
    size = value.shape[-1]
    return size if isinstance(size, int) and 1 <= size <= MOST else None


def _shaped(made: ir.Value, like: ir.Value) -> ir.Value:
    assert like.shape is not None
    sizes: Sequence[int | ir.SymbolicDim] = [like.shape[-1], *like.shape[:-1]]
    made.type, made.shape = like.type, ir.Shape(sizes)
    return made
