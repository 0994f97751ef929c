"""What is the same in each trip of a loop is computed before it.

Before::

    y = Loop(trips, "", x) <body = step (i, go, state) {
        part = Slice(table, [0], [2], [1])
        next = Mul(state, part)
    }>

After::

    part = Slice(table, [0], [2], [1])
    y = Loop(trips, "", x) <body = step (i, go, state) {
        next = Mul(state, part)
    }>

A loop may make no trip, where eager computes nothing of its body. So nothing is moved that may fail: operands that are
stretched to each other have to be known to fit, integers are not divided, and rows are only taken from where there
are some: at a fixed place of a fixed size, or at the number of a loop around, which makes no more trips than there are
rows. Arms of branches in a loop are left alone, since none of them may run.
Source: loop-invariant code motion, Aho, Lam, Sethi, Ullman, "Compilers", 2006, section 9.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import MappingProxyType

import onnx_ir as ir

from dy2st.onnx.passes.expansions import ELEMENTWISE
from dy2st.onnx.passes.graph_facts import constant_integers, fit, is_onnx, same_shape, same_size
from dy2st.onnx.passes.linear_indices import Counters, is_row_of
from dy2st.onnx.passes.loop_sizes import length_of_number
from dy2st.onnx.passes.node_constructs import UNUSUAL
from dy2st.onnx.passes.place_facts import are_places_in
from dy2st.onnx.passes.repeated_nodes import is_pure

LOOPS = frozenset(("Loop", "Scan"))


def nodes_in_loops(graph: ir.Graph, *, inside: bool = False) -> Iterator[ir.Node]:
    """The nodes in the bodies of loops, inner ones first, but for arms that a usual run does not take.

    Each may be replaced when it comes. ``inside`` says that the graph is in a body itself.
    """
    for node in list(graph):
        looped = inside or (node.op_type in LOOPS and is_onnx(node))
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH and attribute.as_graph().name != UNUSUAL:
                yield from nodes_in_loops(attribute.as_graph(), inside=looped)
        if inside:
            yield node


# Of one operand, with constant axes where they have some: these compute something of any tensor.
_OF_ONE = frozenset(
    """Abs Cast Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log LogSoftmax Mish
    Neg Not Reciprocal Relu Round Selu Shape Sigmoid Sign Sin Size Softmax Softplus Softsign Sqrt Tan Tanh Transpose
    Unsqueeze""".split()
)
EXTREMES = frozenset(("ReduceMax", "ReduceMin", "ArgMax", "ArgMin"))
_SUMS = frozenset(("ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare", "ReduceProd", "ReduceMean"))


def hoist_invariants(model: ir.Model) -> None:
    """Move what no trip changes out of loops; in place, the innermost loops first."""
    _hoist(model.graph, {})


def _hoist(graph: ir.Graph, counters: Counters) -> None:
    """``counters`` are the numbers of the trips of the loops around."""
    for node in list(graph):
        for attribute in node.attributes.values():
            if attribute.type != ir.AttributeType.GRAPH:
                continue
            body = attribute.as_graph()
            trips = length_of_number(node.inputs[0]) if node.op_type == "Loop" and is_onnx(node) else None
            _hoist(body, counters if trips is None else {**counters, body.inputs[0]: trips})
            if node.op_type in LOOPS and is_onnx(node):
                _move_out(graph, node, body, counters)


def _move_out(graph: ir.Graph, loop: ir.Node, body: ir.Graph, counters: Counters) -> None:
    results = {id(value) for value in body.outputs}
    inside = {id(value) for value in (*body.inputs, *body.initializers.values())}
    for node in list(body):
        free = not any(id(value) in inside for value in node.inputs if value is not None)
        if (
            free
            and not any(id(out) in results for out in node.outputs)
            and is_pure(node)
            and never_fails(node, counters)
        ):
            body.remove(node)
            graph.insert_before(loop, node)
        else:
            inside.update(id(out) for out in node.outputs)


def never_fails(node: ir.Node, counters: Counters = MappingProxyType({})) -> bool:
    """Whether a node is known to compute something of whatever its operands are.

    Args:
        node: an operator of ONNX's own.
        counters: the numbers of the trips of loops around the place where it is computed.
    """
    kind, inputs = node.op_type, node.inputs
    if kind == "Gather" and is_row_of(inputs[0], _axis(node), inputs[1], counters):
        return True
    rest = all(value is None or constant_integers(value) is not None for value in inputs[1:])
    if kind in _OF_ONE or kind == "Constant":
        return rest and not (kind == "Cast" and inputs[0] is not None and inputs[0].dtype == ir.DataType.STRING)
    if kind in _SUMS:
        return rest and all(value is not None and value.shape is not None for value in inputs[:1])
    if kind in ELEMENTWISE:
        return fit(inputs) and not has_no_result(node)
    if kind == "Slice":
        steps = constant_integers(inputs[4]) if len(inputs) > 4 and inputs[4] is not None else [1]
        return rest and steps is not None and 0 not in steps
    if kind in _RULES:
        return _RULES[kind](node)
    if kind in {"Clip", "LayerNormalization"}:
        return all(value is None or _small(inputs[0], value) for value in inputs[1:])
    if kind in {"Split", "Squeeze", *EXTREMES}:
        return rest and _has_fixed_axes(node)
    return False


def _axis(node: ir.Node) -> int:
    return node.attributes["axis"].as_int() if "axis" in node.attributes else 0


def _is_float(value: ir.Value | None) -> bool:
    return value is not None and value.dtype is not None and value.dtype.is_floating_point()


def has_no_result(node: ir.Node) -> bool:
    """Whether an elementwise operator may have no result for some integers."""
    if node.op_type not in {"Div", "Mod", "Pow"} or _is_float(node.inputs[0]):
        return False
    divisor = constant_integers(node.inputs[1])
    # The least integer divided by -1 has none either.
    return node.op_type == "Pow" or divisor is None or any(each in {0, -1} for each in divisor)


def _rows_exist(node: ir.Node) -> bool:
    """Whether the places that a ``Gather`` takes are known to be inside of a dimension of fixed size."""
    data, places = node.inputs
    axis = _axis(node)
    if are_places_in(places, data, axis):
        return True
    taken = constant_integers(places)
    size = data.shape[axis] if data is not None and data.shape is not None and len(data.shape) else None
    return taken is not None and isinstance(size, int) and all(-size <= each < size for each in taken)


def _beside(node: ir.Node) -> bool:
    """Whether tensors are known to differ in size along the axis of a ``Concat`` alone."""
    shapes = [value.shape for value in node.inputs if value is not None and value.shape is not None]
    dims = len(shapes[0]) if shapes else 0
    if len(shapes) < len(node.inputs) or any(len(shape) != dims for shape in shapes):
        return False
    axis = node.attributes["axis"].as_int() % dims
    return all(same_size(shape[d], shapes[0][d]) for shape in shapes for d in range(dims) if d != axis)


def _as_many(node: ir.Node) -> bool:
    """Whether a ``Reshape`` to constant sizes is known to keep the number of elements, of one open size at most."""
    one, other = node.inputs[0], node.outputs[0]
    if constant_integers(node.inputs[1]) is None:
        return False
    if one is None or one.shape is None or other.shape is None:
        return False
    fixed = [[size for size in value.shape or () if isinstance(size, int)] for value in (one, other)]
    names = [[size.value for size in value.shape or () if not isinstance(size, int)] for value in (one, other)]
    if None in names[0] or math.prod(fixed[0]) != math.prod(fixed[1]) or not math.prod(fixed[0]):
        return False
    return len(names[0]) <= 1 and names[0] == names[1]


def _small(data: ir.Value | None, other: ir.Value) -> bool:
    """Whether a value is one number, or has the size of the last dimension of another."""
    if data is None or data.shape is None or other.shape is None:
        return False
    return not len(other.shape) or (len(other.shape) == 1 and same_size(other.shape[0], data.shape[-1]))


def _multiply(node: ir.Node) -> bool:
    """Whether a matrix, or several, and one matrix are known to have a product."""
    left, right, *rest = node.inputs
    if left is None or right is None or left.shape is None or right.shape is None or len(right.shape) != 2:
        return False
    turned = "transB" in node.attributes and bool(node.attributes["transB"].as_int())
    if "transA" in node.attributes and node.attributes["transA"].as_int():
        return False
    rows, columns = (right.shape[1], right.shape[0]) if turned else (right.shape[0], right.shape[1])
    added = all(
        value is None
        or (
            (value.shape is not None and all(s == 1 or same_size(s, columns) for s in value.shape[-1:]))
            and len(value.shape) <= 1
        )
        for value in rest
    )
    return len(left.shape) >= 1 and same_size(left.shape[-1], rows) and added


def _has_fixed_axes(node: ir.Node) -> bool:
    """Whether the axes that a node works along are of fixed sizes that it can do with."""
    data, kind = node.inputs[0], node.op_type
    if data is None or data.shape is None or not len(data.shape):
        return False
    axes = constant_integers(node.inputs[1]) if len(node.inputs) > 1 and kind != "Split" else None
    if kind in {"Split", "ArgMax", "ArgMin"}:
        axes = [node.attributes["axis"].as_int() if "axis" in node.attributes else 0]
    if kind in {"ReduceMax", "ReduceMin"} and (len(node.inputs) < 2 or node.inputs[1] is None):
        kept = "noop_with_empty_axes" in node.attributes and node.attributes["noop_with_empty_axes"].as_int()
        axes = [] if kept else list(range(len(data.shape)))
    sizes = [data.shape[axis] for axis in axes or [] if -len(data.shape) <= axis < len(data.shape)]
    if not sizes or not all(isinstance(size, int) and size > 0 for size in sizes):
        return False
    return kind != "Squeeze" or all(size == 1 for size in sizes)


def takes_its_places(node: ir.Node) -> bool:
    """Whether a ``GatherElements`` takes from where ``ArgMax`` or ``ArgMin`` has found something in such a tensor."""
    data, places = node.inputs[:2] if node.op_type == "GatherElements" else (None, None)
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    return data is not None and places is not None and _places_in(data, places, axis)


def _places_in(data: ir.Value, places: ir.Value, axis: int) -> bool:
    node = places.producer()
    if node is None or not is_onnx(node):
        return False
    if node.op_type == "Where":
        return all(each is not None and _places_in(data, each, axis) for each in node.inputs[1:])
    if node.op_type not in {"ArgMax", "ArgMin"} or not same_shape(node.inputs[0], data):
        return False
    found = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    kept = "keepdims" not in node.attributes or bool(node.attributes["keepdims"].as_int())
    assert data.shape is not None
    return kept and found % len(data.shape) == axis % len(data.shape)


def _stretches_one(node: ir.Node) -> bool:
    """Whether a number is stretched to sizes, none of which is negative."""
    number, sizes = node.inputs
    return number is not None and number.shape is not None and not len(number.shape) and _are_sizes(sizes)


def _are_sizes(value: ir.Value | None) -> bool:
    """Whether integers are known to be sizes of tensors."""
    constants = constant_integers(value)
    if constants is not None:
        return all(each >= 0 for each in constants)
    node = value.producer() if value is not None else None
    if node is None or not is_onnx(node):
        return False
    return node.op_type == "Shape" or (node.op_type == "Concat" and all(map(_are_sizes, node.inputs)))


_RULES = {
    "Concat": _beside,
    "Expand": _stretches_one,
    "Gather": _rows_exist,
    "Gemm": _multiply,
    "MatMul": _multiply,
    "Reshape": _as_many,
}
