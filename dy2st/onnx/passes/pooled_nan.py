"""Max pooling of what is not finite: onnxruntime 1.31 passes over NaN, and gives the least number in place of -inf.

Before::

    y = MaxPool(x)

After::

    pooled = MaxPool(x)
    total = ReduceSum(x)
    wrong = IsNaN(Sub(total, total))
    y = If(wrong) <
        then_branch = unusual () => (y_1) {
            nans = MaxPool(Cast(IsNaN(x)))
            numbers = MaxPool(Cast(Greater(x, -inf)))
            y_1 = Where(nans, NaN, Where(numbers, pooled, -inf))
        },
        else_branch = usual () => (y_2) { y_2 = Identity(pooled) }
    >

A sum is finite only if all parts are. The place of a window with NaN is that of the last one, and of a window without
any number that of its first element, as in torch's ``max_pool2d_with_indices``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, FLOATS, INT64, arm, cast, constant, op, ops, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.interval_analysis import Intervals
from dy2st.onnx.passes.node_constructs import UNUSUAL, stand_for_none


def pool_nan(model: ir.Model, opset: int) -> None:
    """Write such operators so; in place, subgraphs included."""
    nodes = [node for node in ir.traversal.RecursiveGraphIterator(model.graph) if _is_pooling(node)]
    intervals = Intervals(model.graph) if nodes else None
    for node in nodes:
        if intervals is not None and not intervals.of(node.inputs[0]).is_finite:
            _pool(node, opset)


def _is_pooling(node: ir.Node) -> bool:
    return node.op_type == "MaxPool" and is_onnx(node) and node.outputs[0].dtype in FLOATS


def _pool(node: ir.Node, opset: int) -> None:
    results = [out for out in node.outputs if out.uses() or out.is_graph_output() or out is node.outputs[0]]
    # onnxruntime 1.31 expects another shape of places in windows beyond the end than it gives, and compares the two
    # where they leave a branch.
    beyond = len(results) > 1 and node.attributes.get_int("ceil_mode", 0) == 1
    with recording(opset) as made:
        attributes = {name: each.value for name, each in node.attributes.items()}
        pooled = ops("MaxPool", node.inputs[0], dtypes=(None, INT64)[: len(results)], **attributes)
        for value, result in zip(pooled, results, strict=True):
            value.shape = result.shape
        found = _exactly(node, pooled) if beyond else _where_needed(node, pooled, results, opset)
    for value, result in zip(found, results, strict=True):
        value.shape = result.shape
    if len(results) < len(node.outputs):
        node.resize_outputs(len(results))
    put_in_place(node, made.nodes, found)


def _where_needed(
    node: ir.Node, pooled: Sequence[ir.Value], results: Sequence[ir.Value], opset: int
) -> Sequence[ir.Value]:
    """The results of a branch: as they are where all is finite."""
    total = op("ReduceSum", node.inputs[0], keepdims=0)
    wrong = op("IsNaN", op("Sub", total, total))
    arms = []
    for name in (UNUSUAL, "usual"):
        with recording(opset) as inner:
            values = _exactly(node, pooled) if name == UNUSUAL else [op("Identity", value) for value in pooled]
        for value, result in zip(values, results, strict=True):
            value.type, value.shape = result.type, result.shape
        arms.append(arm(inner.nodes, values, like=node, name=name))
    dtypes = [result.dtype for result in results]
    found = ops("If", wrong, dtypes=dtypes, then_branch=arms[0], else_branch=arms[1])
    branch = found[0].producer()
    assert branch is not None
    branch.metadata_props.update(node.metadata_props)
    stand_for_none(branch)
    return found


def _exactly(node: ir.Node, pooled: Sequence[ir.Value]) -> list[ir.Value]:
    x = node.inputs[0]
    assert x is not None
    attributes = {name: each.value for name, each in node.attributes.items()}
    values = list(pooled)

    def has_some(flags: ir.Value) -> ir.Value:
        return op("Greater", op("MaxPool", cast(flags, FLOAT), **attributes), 0.5)

    is_nan = op("IsNaN", x)
    nans, numbers = has_some(is_nan), has_some(op("Greater", x, -math.inf))
    values[0] = op("Where", nans, math.nan, op("Where", numbers, values[0], -math.inf))
    if len(values) == 2:
        places = cast(op("Range", constant(0), op("Size", x), constant(1)), DOUBLE)
        places = op("Reshape", places, op("Shape", x))
        last = op("MaxPool", op("Where", is_nan, places, -1.0), **attributes)
        first = op("Neg", op("MaxPool", op("Neg", places), **attributes))
        values[1] = op("Where", nans, cast(last, INT64), op("Where", numbers, values[1], cast(first, INT64)))
    return values
