"""Integers that onnxruntime computes as doubles, in forms that it computes as integers.

onnxruntime 1.31 sums and multiplies integers along a dimension in doubles, so do ``Mod`` with ``fmod`` and ``Range``:
what is beyond 2**53 comes out rounded, and what is beyond 2**63 at the limit, where torch goes on from the other end.
Its products of matrices, ``ScatterElements`` and arithmetic of two operands are those of integers. A sum as a product
with ones is also faster than ``ReduceSum``.

Nothing is written in another way where the numbers are known to be small: flags and sizes, places, counts of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import INT64, cast, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.integer_facts import ELEMENTS, IntegerFacts
from dy2st.onnx.passes.missing_kernels import refuse

# Up to here a double has all integers.
EXACT = 2**53
_INTEGERS = frozenset((ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, INT64))
# A constant of more ones than these is made when the file runs.
_MOST_ONES = 256


def compute_exactly(model: ir.Model, opset: int) -> None:
    """Write such operators so; in place, subgraphs included.

    Raises:
        UntranslatedError: the dimensions of a sum are not known.
    """
    facts = IntegerFacts(model)
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        write = _WRITTEN.get(node.op_type)
        if write is None or not is_onnx(node) or node.outputs[0].dtype not in _INTEGERS:
            continue
        with recording(opset) as made:
            value = write(node, facts)
        if value is not None:
            value.shape = node.outputs[0].shape
            put_in_place(node, made.nodes, [value])


def _sum(node: ir.Node, facts: IntegerFacts) -> ir.Value | None:
    largest, count = facts.largest(node.inputs[0]), _count(node)
    if largest is not None and largest * count < _limit(node):
        return None
    return _reduced(node, _sum_along)


def _product(node: ir.Node, facts: IntegerFacts) -> ir.Value | None:
    largest, count = facts.largest(node.inputs[0]), _count(node)
    if largest is not None and (largest <= 1 or count * math.log2(largest) < math.log2(_limit(node))):
        return None
    return _reduced(node, _product_along)


def _remainder(node: ir.Node, facts: IntegerFacts) -> ir.Value | None:
    """What is left of a division towards zero: it has the sign of the dividend."""
    left, right = node.inputs
    if "fmod" not in node.attributes or not node.attributes["fmod"].as_int():
        return None
    if all(largest is not None and largest <= EXACT for largest in map(facts.largest, node.inputs)):
        return None
    assert left is not None
    divisor = constant_integers(right)
    if divisor and not {0, -1} & set(divisor):
        return op("Sub", left, op("Mul", op("Div", left, right), right))
    rest = op("Mod", left, right)
    turned = op("Xor", op("Less", left, 0), op("Less", rest, 0))
    return op("Where", op("And", turned, op("Not", op("Equal", rest, 0))), op("Sub", rest, right), rest)


def _range(node: ir.Node, facts: IntegerFacts) -> ir.Value | None:
    """Numbers from one that may be large, as numbers from zero and that one."""
    start, end, step = node.inputs
    largest = facts.largest(start)
    if start is None or (largest is not None and largest < EXACT // 2):
        return None
    return op("Add", op("Range", 0, op("Sub", end, start), step), start)


_WRITTEN: dict[str, Callable[[ir.Node, IntegerFacts], ir.Value | None]] = {
    "ReduceSum": _sum,
    "ReduceProd": _product,
    "Mod": _remainder,
    "Range": _range,
}


def _limit(node: ir.Node) -> int:
    """Up to here a result is right; what is narrower than int32 is computed as int32."""
    return EXACT if node.outputs[0].dtype == INT64 else 2**31


def _axes(node: ir.Node, dims: int) -> list[int] | None:
    """The dimensions that are reduced, counted from the front; None if that is not known."""
    wanted = node.inputs[1] if len(node.inputs) > 1 else None
    if not dims:
        return []  # a number is its own sum
    axes = [] if wanted is None else constant_integers(wanted)
    if axes:
        return sorted(axis % dims for axis in axes)
    stays = "noop_with_empty_axes" in node.attributes and node.attributes["noop_with_empty_axes"].as_int()
    return None if axes is None else [] if stays else list(range(dims))


def _count(node: ir.Node) -> int:
    """How many elements are reduced to one, at most; what is counted in int32 has no more than that counts."""
    data, most = node.inputs[0], ELEMENTS if node.outputs[0].dtype == INT64 else 2**31 - 1
    axes = None if data is None or data.shape is None else _axes(node, len(data.shape))
    if data is None or data.shape is None or axes is None:
        return most
    sizes = [data.shape[axis] for axis in axes]
    known = [size for size in sizes if isinstance(size, int)]
    return math.prod(known) if len(known) == len(sizes) else most


def _reduced(node: ir.Node, reduce: Callable[[ir.Value, int], ir.Value]) -> ir.Value | None:
    """The result of a reduction, of the node's dtype and with the dimensions that it keeps; None if none is reduced.

    Raises:
        UntranslatedError: the dimensions are not known.
    """
    data, dtype = node.inputs[0], node.outputs[0].dtype
    keeps = "keepdims" not in node.attributes or node.attributes["keepdims"].as_int()
    if data is not None and data.shape is None and len(node.inputs) == 1 and not keeps:
        data = op("Reshape", data, [-1])
        data.shape = ir.Shape([None])
    axes = None if data is None or data.shape is None else _axes(node, len(data.shape))
    if data is None or data.shape is None or axes is None:
        refuse(node, {} if dtype is None else {"T": dtype})
        return None
    if not axes:  # onnxruntime multiplies even one number as a double
        return None if len(data.shape) else op("Identity", data)
    whole = cast(data, INT64)
    whole.shape = data.shape
    value = _along(whole, axes, reduce)
    return cast(op("Unsqueeze", value, axes) if keeps else value, dtype)


def _along(data: ir.Value, axes: list[int], reduce: Callable[[ir.Value, int], ir.Value]) -> ir.Value:
    """Reduce one dimension after the other, or all of them in a row."""
    assert data.shape is not None
    sizes = list(data.shape)
    if len(axes) == len(sizes) > 1:
        data = op("Reshape", data, [-1])
        data.shape = ir.Shape([math.prod(sizes) if all(isinstance(size, int) for size in sizes) else None])
        return reduce(data, 0)
    for axis in reversed(axes):
        data = reduce(data, axis)
        sizes.pop(axis)
        data.shape = ir.Shape(sizes)
    return data


def _sum_along(data: ir.Value, axis: int) -> ir.Value:
    assert data.shape is not None
    dims, size = len(data.shape), data.shape[axis]
    if isinstance(size, int) and size <= _MOST_ONES:
        ones = op("Constant", value=ir.tensor(np.ones(size, np.int64)), dtype=INT64)
    else:
        ones = op("ConstantOfShape", op("Shape", data, start=axis, end=axis + 1), value=ir.tensor([1]), dtype=INT64)
    ones.shape = ir.Shape([size])
    if axis == dims - 2:
        return op("MatMul", ones, data)
    if axis < dims - 2:
        others = [each for each in range(dims) if each != axis]
        moved = op("Transpose", data, perm=[*others, axis])
        moved.shape = ir.Shape([data.shape[each] for each in (*others, axis)])
        data = moved
    return op("MatMul", data, ones)


def _product_along(data: ir.Value, axis: int) -> ir.Value:
    """All factors are written to one place, where each multiplies what is there."""
    assert data.shape is not None
    dims = len(data.shape)
    shape = op("Shape", data)
    zeros = op("ConstantOfShape", shape, value=ir.tensor([0]), dtype=INT64)
    row = [int(each == axis) for each in range(dims)]
    one_each = (
        op("Where", op("Equal", row, 1), 1, shape) if dims > 1 else op("Constant", value=ir.tensor([1]), dtype=INT64)
    )
    ones = op("ConstantOfShape", one_each, value=ir.tensor([1]), dtype=INT64)
    return op("Squeeze", op("ScatterElements", ones, zeros, data, axis=axis, reduction="mul"), [axis])
