"""What is known of the numbers in a value: that NaN fills whole rows, that no zero is negative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import PICKING, is_onnx

# onnxruntime 1.31 computes a LogSoftmax of doubles otherwise.
_ALONG_AXIS = {
    "Softmax": frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE)),
    "LogSoftmax": frozenset((ir.DataType.FLOAT,)),
}


def nan_fills(value: ir.Value | None, axis: int) -> bool:
    """Whether all elements along a dimension are NaN if one is.

    A softmax divides by a sum over the row, which is NaN as soon as one of its parts is.
    """
    node = value.producer() if value is not None else None
    if value is None or node is None or not is_onnx(node) or value.shape is None or not len(value.shape):
        return False
    if value.dtype not in _ALONG_AXIS.get(node.op_type, ()):
        return False
    own = node.attributes["axis"].as_int() if "axis" in node.attributes else -1
    return own % len(value.shape) == axis % len(value.shape)


def never_negative_zero(value: ir.Value | None) -> bool:
    """Whether no element can be -0.0; a sum is that only if both parts are."""
    known = _by_itself(value, lambda numbers: not np.signbit(numbers[numbers == 0]).any())
    if value is None or known is not None:
        return bool(known)
    node = value.producer()
    if node is None or not is_onnx(node):
        return False
    if node.op_type == "Abs":
        return True
    if node.op_type == "Add":
        return any(map(never_negative_zero, node.inputs))
    if node.op_type in PICKING or node.op_type == "Concat":
        return all(map(never_negative_zero, node.inputs if node.op_type == "Concat" else node.inputs[:1]))
    return node.op_type == "Where" and all(map(never_negative_zero, node.inputs[1:]))


def _by_itself(value: ir.Value | None, holds: Callable[[np.ndarray], bool]) -> bool | None:
    """Whether something holds for a constant of floats, and for integers and bools in any case; None if unknown."""
    if value is None:
        return None
    if value.dtype is not None and not value.dtype.is_floating_point():
        return True
    constant = _constant(value)
    return None if constant is None else holds(constant)


def _constant(value: ir.Value) -> np.ndarray | None:
    found = ir.convenience.get_const_tensor(value)
    if found is None or found.dtype not in {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16}:
        return None
    return found.numpy()
