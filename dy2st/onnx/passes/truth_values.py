"""Truth values that are made numbers and compared again, or negated twice: they are what they were.

A condition of Python's that torch traces as a symbolic bool becomes an int, and is asked for not being zero.

Before::

    number = Where(test, 1, 0)
    is_zero = Equal(number, 0)
    go = Not(is_zero)

After: ``go`` is ``test``.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx


def keep_truth_values(model: ir.Model, opset: int) -> None:
    """Take out what turns a truth value into another kind and back; in place, subgraphs included."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if not is_onnx(node) or node.op_type not in {"Equal", "Not"}:
            continue
        test, negated = _test(node.outputs[0])
        if test is node.outputs[0] or (node.op_type == "Not" and test is node.inputs[0]):
            continue
        with recording(opset) as made:
            found = op("Not" if negated else "Identity", test)
        found.shape = node.outputs[0].shape
        put_in_place(node, made.nodes, [found])


def _test(value: ir.Value) -> tuple[ir.Value, bool]:
    """The truth value that one stands for, and whether it is its contrary."""
    node = value.producer()
    if node is None or not is_onnx(node):
        return value, False
    if node.op_type == "Not" and node.inputs[0] is not None:
        inner, negated = _test(node.inputs[0])
        return inner, not negated
    if node.op_type == "Identity" and node.inputs[0] is not None and node.inputs[0].dtype == ir.DataType.BOOL:
        return _test(node.inputs[0])
    if node.op_type == "Equal":
        for place in (0, 1):
            found = _asked(node.inputs[place], node.inputs[1 - place])
            if found is not None:
                inner, negated = _test(found[0])
                return inner, negated != found[1]
    return value, False


def _asked(chosen: ir.Value | None, number: ir.Value | None) -> tuple[ir.Value, bool] | None:
    """The test of a ``Where`` of two different numbers, one of which it is compared with."""
    node = chosen.producer() if chosen is not None else None
    if node is None or node.op_type != "Where" or not is_onnx(node) or node.inputs[0] is None:
        return None
    yes, no, wanted = (_integer(each) for each in (*node.inputs[1:3], number))
    if None in (yes, no, wanted) or yes == no or wanted not in (yes, no):
        return None
    return node.inputs[0], wanted == no


def _integer(value: ir.Value | None) -> int | None:
    """The integer that a 0-d constant is: with it a ``Where`` has the shape of its test."""
    found = ir.convenience.get_const_tensor(value) if value is not None else None
    if found is None or len(found.shape) or not found.dtype.is_integer():
        return None
    return int(found.numpy().item())
