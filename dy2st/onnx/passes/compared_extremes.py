"""A greatest or least element that is only compared with a number needs no test of NaN, or a cheaper one.

A comparison with NaN is false, and so is one of the greatest element where an element is NaN.

Before, for ``error.max() < 1e-5``::

    value = ReduceMax<keepdims = 0>(error)
    wrong = ReduceMax<keepdims = 0>(IsNaN(error))
    greatest = Where(wrong, NaN, value)
    done = Less(greatest, 1e-5)

After::

    small = Less(error, 1e-5)
    done = ReduceMin<keepdims = 0>(small)

So it is for a least element that is above a number. For a greatest element that is above one, in the body of a loop or
an arm, after::

    value = ReduceMax<keepdims = 0>(error)
    sum = ReduceL1<keepdims = 0>(error)
    greatest = Min(value, sum)
    done = Greater(greatest, 1e-5)

A sum of absolute values is NaN if one of them is, and else none of them is greater, however it is rounded. (Zeros of
both signs may change places: a comparison takes them as equal.)

Of no element there is no extreme, and eager fails. So does onnxruntime 1.31 for extremes of truth values, as in the
test of NaN, but not for those of floats: the last form is for sizes that are known not to be zero. They are if the
graph takes an extreme of truth values of that size in any case, as for the condition of a loop before its first trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import onnx_ir as ir

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, cast, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.loop_sizes import read_sizes

_FLIPPED = {"Less": "Greater", "LessOrEqual": "GreaterOrEqual", "Greater": "Less", "GreaterOrEqual": "LessOrEqual"}
# What is true of an extreme if it is true of all elements.
_OF_ALL = {"ReduceMax": ("Less", "LessOrEqual"), "ReduceMin": ("Greater", "GreaterOrEqual")}
# The first opset in which there are extremes of truth values.
_OF_TRUTHS = 20


def compare_extremes(model: ir.Model, opset: int, filled: AbstractSet[str]) -> None:
    """Write such comparisons so; in place, subgraphs included. ``filled`` are names of sizes that are never zero."""
    filled = (
        filled | read_sizes(model.graph) | (_sizes_of_extremes(model.graph) if opset >= _OF_TRUTHS else frozenset())
    )
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type not in _FLIPPED or not is_onnx(node) or node.graph is None:
            continue
        for place in (0, 1):
            chosen, other = node.inputs[place], node.inputs[1 - place]
            extreme = _extreme(chosen)
            if extreme is None or other is None or other.shape is None or len(other.shape):
                continue
            kind = node.op_type if place == 0 else _FLIPPED[node.op_type]
            inside = node.graph is not model.graph and _is_some(extreme.inputs[0], filled)
            found = _compared(extreme, kind, other, opset, inside=inside)
            if found is not None:
                nodes, value = found
                put_in_place(node, nodes, [value])
                _remove_unread(chosen)
            break


def _sizes_of_extremes(graph: ir.Graph) -> frozenset[str]:
    """The names of sizes with which a graph takes an extreme of truth values whatever it is given."""
    found: set[str] = set()
    for node in graph:
        flags = node.inputs[0] if node.op_type in {"ReduceMax", "ReduceMin"} and is_onnx(node) else None
        if flags is not None and flags.dtype == BOOL and flags.shape is not None and _reduces_all(node):
            found.update(size.value for size in flags.shape if not isinstance(size, int) and size.value is not None)
    return frozenset(found)


def _is_some(x: ir.Value | None, filled: AbstractSet[str]) -> bool:
    """Whether a value is known to have an element."""
    if x is None or x.shape is None:
        return False
    return all(size > 0 if isinstance(size, int) else size.value in filled for size in x.shape)


def _compared(
    extreme: ir.Node, kind: str, other: ir.Value, opset: int, *, inside: bool
) -> tuple[Sequence[ir.Node], ir.Value] | None:
    x = extreme.inputs[0]
    assert x is not None
    with recording(opset) as made:
        if kind in _OF_ALL[extreme.op_type]:
            each = op(kind, x, other)
            number = each if opset >= _OF_TRUTHS else cast(each, ir.DataType.UINT8)
            value = cast(op("ReduceMin", number, keepdims=0), BOOL)
        elif extreme.op_type == "ReduceMax" and inside:
            value = op("ReduceMax", x, keepdims=0)
            total = op("ReduceL1", x, keepdims=0)
            value.shape = total.shape = ir.Shape([])
            value = op(kind, op("Min", value, total), other)
        else:
            return None
    value.shape = ir.Shape([])
    return made.nodes, value


def _extreme(value: ir.Value | None) -> ir.Node | None:
    """The reduction of all elements of a value that is NaN instead if one is, and is read once."""
    node = _made_by(value, "Where")
    if node is None or value is None or len(value.uses()) != 1 or value.is_graph_output():
        return None
    wrong, nan, plain = node.inputs
    found = ir.convenience.get_const_tensor(nan) if nan is not None else None
    extreme = _made_by(plain, "ReduceMax") or _made_by(plain, "ReduceMin")
    if found is None or found.size != 1 or extreme is None or not _reduces_all(extreme):
        return None
    if found.dtype not in {FLOAT, DOUBLE} or found.numpy().item() == found.numpy().item():
        return None
    told = _made_by(wrong, "Cast")
    some = _made_by(told.inputs[0] if told is not None else wrong, "ReduceMax")
    if some is None or not _reduces_all(some):
        return None
    number = _made_by(some.inputs[0], "Cast")
    test = _made_by(number.inputs[0] if number is not None else some.inputs[0], "IsNaN")
    return extreme if test is not None and test.inputs[0] is extreme.inputs[0] else None


def _reduces_all(node: ir.Node) -> bool:
    kept = "keepdims" not in node.attributes or bool(node.attributes["keepdims"].as_int())
    noop = "noop_with_empty_axes" in node.attributes and bool(node.attributes["noop_with_empty_axes"].as_int())
    return not kept and not noop and (len(node.inputs) == 1 or node.inputs[1] is None)


def _made_by(value: ir.Value | None, kind: str) -> ir.Node | None:
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type == kind and is_onnx(node) else None


def _remove_unread(value: ir.Value | None) -> None:
    """Take out the node of a value that nothing reads, and those that only it has read."""
    node = value.producer() if value is not None else None
    if node is None or node.graph is None or any(out.uses() or out.is_graph_output() for out in node.outputs):
        return
    operands = list(node.inputs)
    node.graph.remove(node, safe=True)
    for operand in operands:
        _remove_unread(operand)
