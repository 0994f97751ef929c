"""An operator on each of many rows, as one operator on all of them: the rows are one more dimension in front.

``rows_of(node, rows)`` writes the node for rows of operands, if it can::

    row = Gather(x, i)                               # x: [time, batch, inputs]
    y = Gemm<transB = 1>(row, w, b)                  # one row of y

    flat = Reshape(x, [-1, inputs])
    product = Gemm<transB = 1>(flat, w, b)
    ys = Reshape(product, [time, batch, outputs])    # all rows of y

The arithmetic of each element is the same. In a product of matrices onnxruntime may add in another order for another
number of rows.

What is made is not much larger than what is there: a product has at most ``WIDER`` times the columns of its operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from dy2st.onnx.building import op, ops
from dy2st.onnx.passes.expansions import ELEMENTWISE
from dy2st.onnx.passes.graph_facts import constant_integers, fit, is_onnx, same_shape

WIDER = 8
# Of a small row that is stretched; a size that is not known counts as a small batch.
STRETCHED, SMALL, SMALL_BATCH = 16, 1024, 4

Rows = Mapping[ir.Value, ir.Value]

_OF_ONE = frozenset(
    """Abs Cast Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not
    Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus Softsign Sqrt Tan Tanh""".split()
)


def rows_of(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    """All rows of what a node gives, recorded; None if that can't be told, or is no gain.

    Args:
        node: the node, in the body of a loop.
        rows: those of its operands that differ from trip to trip; the others are the same in all trips.
    """
    form = _FORMS.get(node.op_type)
    if form is None or not is_onnx(node) or any(out.shape is None for out in node.outputs):
        return None
    if any(value is not None and value.shape is None for value in node.inputs):
        return None
    found = form(node, rows)
    if found is not None:
        for one, whole in zip(node.outputs, found, strict=True):
            assert one.shape is not None
            whole.type, whole.shape = one.type, ir.Shape([None, *one.shape])
    return found


def in_front(data: ir.Value, axis: int) -> ir.Value:
    """A tensor with one of its dimensions in front of the others: along it are the rows."""
    assert data.shape is not None
    order = [axis % len(data.shape), *(each for each in range(len(data.shape)) if each != axis % len(data.shape))]
    found = op("Transpose", data, perm=order)
    found.type, found.shape = data.type, ir.Shape([data.shape[each] for each in order])
    return found


def turned(rows: ir.Value) -> ir.Value | None:
    """What rows are from the last to the first, if they were turned round."""
    node = rows.producer()
    if node is None or node.op_type != "Slice" or not is_onnx(node) or len(node.inputs) != 5:
        return None
    begin, end, axes, steps = map(constant_integers, node.inputs[1:])
    whole = begin == [-1] and axes == [0] and steps == [-1] and end is not None and end[0] <= -(2**31)
    return node.inputs[0] if whole else None


def _dims(value: ir.Value | None) -> int:
    assert value is not None
    assert value.shape is not None
    return len(value.shape)


def _same(node: ir.Node, inputs: Sequence[ir.Value | None], **changed: object) -> Sequence[ir.Value]:
    """The operator on other operands, with other attributes."""
    attributes = {name: attribute.value for name, attribute in node.attributes.items()} | changed
    dtypes = [out.dtype for out in node.outputs]
    return ops(node.op_type, *inputs, dtypes=dtypes, **attributes)


def _unary(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    (value,) = node.inputs
    assert value is not None
    return _same(node, [rows[value]])


def _elementwise(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    out = node.outputs[0]
    if not fit(node.inputs):
        return None
    # What is as large as an operand, or not much larger, or is made of the number of the trip alone.
    large = [value for value in node.inputs if value is not None and value in rows and _dims(value)]
    if not (any(_is_as_large(value, out) for value in large) if large else _dims(out) <= 1):
        return None
    operands = []
    for value in node.inputs:
        assert value is not None
        lacking = _dims(out) - _dims(value)
        whole = rows.get(value, value)
        if value in rows and lacking:
            whole = op("Unsqueeze", whole, list(range(1, 1 + lacking)))
        operands.append(whole)
    return _same(node, operands)


def _is_as_large(value: ir.Value, out: ir.Value) -> bool:
    """Whether what is made of a row is of its shape, or a small row that it is stretched to, not much larger."""
    if same_shape(value, out):
        return True
    assert value.shape is not None
    assert out.shape is not None
    stretched = [
        size
        for one, size in zip(([1] * _dims(out) + list(value.shape))[-_dims(out) :], out.shape, strict=True)
        if one == 1
    ]
    if not all(isinstance(size, int) for size in stretched):
        return False
    elements = math.prod(size if isinstance(size, int) else SMALL_BATCH for size in out.shape)
    return math.prod(size for size in stretched if isinstance(size, int)) <= STRETCHED and elements <= SMALL


def _along_axis(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    """An operator with an attribute ``axis`` of its first operand, which differs; the others are the same."""
    value = node.inputs[0]
    if value not in rows or any(other in rows for other in node.inputs[1:]):
        return None
    assert value is not None
    default = 0 if node.op_type in {"Split", "Gather"} else -1
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else default
    return _same(node, [rows[value], *node.inputs[1:]], axis=axis % _dims(value) + 1)


def _concat(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    if any(value not in rows for value in node.inputs):
        return None
    axis = node.attributes["axis"].as_int() % _dims(node.outputs[0])
    return _same(node, [rows[value] for value in node.inputs if value is not None], axis=axis + 1)


def _gather(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    data, places = node.inputs
    assert data is not None
    assert places is not None
    if data in rows:
        return _along_axis(node, rows)
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    return _same(node, [data, rows[places]]) if not axis and _dims(data) <= 2 else None


def _with_axes(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    """An operator whose second operand is constant axes."""
    value = node.inputs[0]
    axes = constant_integers(node.inputs[1]) if len(node.inputs) == 2 else None
    if value is None or axes is None:
        return None
    dims = _dims(node.outputs[0] if node.op_type == "Unsqueeze" else value)
    return _same(node, [rows[value], [axis % dims + 1 for axis in axes]])  # type: ignore[list-item]


def _transpose(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    value = node.inputs[0]
    assert value is not None
    order = node.attributes["perm"].as_ints() if "perm" in node.attributes else range(_dims(value))[::-1]
    return _same(node, [rows[value]], perm=[0, *(axis + 1 for axis in order)])


def _columns(left: ir.Value, right: ir.Value, *, turned: bool) -> tuple[int, int] | None:
    """The columns of the left operand of a product with a matrix and of the product, if they are not many more."""
    if left.shape is None or right.shape is None or not len(left.shape) or len(right.shape) != 2:
        return None
    inner, outer = (right.shape[1], right.shape[0]) if turned else (right.shape[0], right.shape[1])
    if not isinstance(inner, int) or not isinstance(outer, int) or not inner or left.shape[-1] != inner:
        return None
    return (inner, outer) if outer <= WIDER * inner else None


def _matmul(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    left, right = node.inputs
    assert left is not None
    assert right is not None
    if left not in rows or right in rows or _columns(left, right, turned=False) is None:
        return None
    return _same(node, [rows[left], right])


def _gemm(node: ir.Node, rows: Rows) -> Sequence[ir.Value] | None:
    left, right, *rest = node.inputs
    assert left is not None
    assert right is not None
    turned, transposed = (
        name in node.attributes and bool(node.attributes[name].as_int()) for name in ("transB", "transA")
    )
    columns = _columns(left, right, turned=turned)
    if left not in rows or transposed or right in rows or columns is None:
        return None
    if any(value is not None and (value in rows or _dims(value) > 1) for value in rest):
        return None
    inner, outer = columns
    (product,) = _same(node, [op("Reshape", rows[left], [-1, inner]), right, *rest])
    shape = op("Concat", op("Shape", rows[left], start=0, end=2), [outer], axis=0)
    return [op("Reshape", product, shape, allowzero=1)]


_FORMS: dict[str, Callable[[ir.Node, Rows], Sequence[ir.Value] | None]] = {
    **dict.fromkeys(_OF_ONE, _unary),
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(("Split", "Softmax", "LogSoftmax", "LayerNormalization"), _along_axis),
    **dict.fromkeys(("Unsqueeze", "Squeeze"), _with_axes),
    "Concat": _concat,
    "Gather": _gather,
    "Transpose": _transpose,
    "MatMul": _matmul,
    "Gemm": _gemm,
}
