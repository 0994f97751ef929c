"""In the body of a loop, a branch that chooses one of two small values is a ``Where``.

Before::

    old = If(stop) <
        then_branch = left () => (a) { a = Identity(eig) },
        else_branch = on () => (b) { b = Mul(eig, half) }
    >

After, if both values have one shape of few elements, and neither arm can fail::

    b = Mul(eig, half)
    old = Where(stop, eig, b)

onnxruntime 1.31 takes as long for a branch as for some four operators on a number. A value of a size that is not known
is chosen so only where the arms compute nothing.
Source: if-conversion, Allen, Kennedy, Porterfield, Warren, "Conversion of Control Dependence to Data Dependence", 1983.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, INT32, INT64, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx, same_shape
from dy2st.onnx.passes.loop_invariants import never_fails, nodes_in_loops
from dy2st.onnx.passes.repeated_nodes import is_pure

# Of both arms, for each value that is chosen.
MOST_NODES = 2
# Elements, where a size that is not known counts as a small batch.
MOST_ELEMENTS = 256
_SMALL_BATCH = 4
# What onnxruntime's Where is made for; of truth values it has none.
_CHOSEN = frozenset((FLOAT, DOUBLE, INT32, INT64))
_PRODUCTS = frozenset(("Gemm", "MatMul", "Einsum", "Conv"))


def choose_values(model: ir.Model, opset: int) -> None:
    """Write such branches so; in place, in the bodies of loops, inner branches first."""
    for node in nodes_in_loops(model.graph):
        if node.op_type == "If" and is_onnx(node) and _is_choice(node):
            _choose(node, opset)


def _arms(node: ir.Node) -> tuple[ir.Graph, ir.Graph]:
    return node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()


def _is_choice(node: ir.Node) -> bool:
    """Whether both arms of a branch give small values of the same shapes, and compute little."""
    test, arms = node.inputs[0], _arms(node)
    if test is None or test.shape is None or len(test.shape):
        return False
    computed = [inner for arm in arms for inner in arm if inner.op_type not in {"Identity", "Constant"}]
    if len(computed) > MOST_NODES * len(node.outputs):
        return False
    if not all(is_pure(inner) and never_fails(inner) and inner.op_type not in _PRODUCTS for inner in computed):
        return False
    if not all(_is_small(value, counted=True) for inner in computed for value in (*inner.inputs, *inner.outputs)):
        return False
    values = [value for arm in arms for value in arm.outputs]
    if not all(value.dtype in _CHOSEN and _is_small(value, counted=bool(computed)) for value in values):
        return False
    return all(same_shape(one, other) for one, other in zip(*(arm.outputs for arm in arms), strict=True))


def _is_small(value: ir.Value | None, *, counted: bool) -> bool:
    """Whether a value has few elements; ``counted``: whatever its sizes are that differ from call to call."""
    if value is None or value.shape is None:
        return False
    sizes = [size if isinstance(size, int) else MOST_ELEMENTS + 1 if counted else _SMALL_BATCH for size in value.shape]
    return math.prod(sizes) <= MOST_ELEMENTS


def _choose(node: ir.Node, opset: int) -> None:
    """Put what the arms compute before the branch, and a ``Where`` for each of its values in its place."""
    graph, test, arms = node.graph, node.inputs[0], _arms(node)
    assert graph is not None
    assert test is not None
    results = [list(arm.outputs) for arm in arms]
    for arm in arms:
        arm.outputs.clear()
        for value in list(arm.initializers.values()):
            del arm.initializers[value.name or ""]
            assert value.const_value is not None
            inner = ir.Node("", "Constant", [], [ir.AttrTensor("value", value.const_value)], version=opset)
            inner.outputs[0].name, inner.outputs[0].type, inner.outputs[0].shape = value.name, value.type, value.shape
            value.replace_all_uses_with(inner.outputs[0])
            results = [[inner.outputs[0] if each is value else each for each in some] for some in results]
            graph.insert_before(node, [inner])
        nodes = list(arm)
        arm.remove(nodes)
        graph.insert_before(node, nodes)
    with recording(opset) as made:
        chosen = [op("Where", test, _original(one), _original(other)) for one, other in zip(*results, strict=True)]
    for value, out in zip(chosen, node.outputs, strict=True):
        value.type, value.shape = out.type, out.shape
    put_in_place(node, made.nodes, chosen)


def _original(value: ir.Value) -> ir.Value:
    """What a value is a copy of."""
    node = value.producer()
    copied = node.inputs[0] if node is not None and node.op_type == "Identity" and is_onnx(node) else None
    return value if copied is None else _original(copied)
