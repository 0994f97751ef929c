"""Tensors made from numbers, exact in every dtype, of sizes and values that may be known only when the graph runs.

torch's exporter makes a float32 constant of each Python number first: ``0.1`` in float64 is off in the ninth digit.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, FLOATS, INT64, cast, constant, op, vector
from dy2st.onnx.translations.doubles import double_of


def number(value: Any, dtype: Any) -> ir.Value:
    """A number, fixed or known only to the graph, as a 0-d value."""
    dtype = ir.DataType(dtype)
    if isinstance(value, ir.Value):
        return double_of(value) if dtype == DOUBLE else cast(value, dtype)
    if dtype == BOOL:
        return constant(bool(value), dtype)
    if dtype in FLOATS:
        return constant(float(value), dtype)
    # As the cast of a tensor does: towards zero, and round the corner.
    return constant(int(torch.tensor(value).to(_torch_integer(dtype)).item()), dtype)


def _torch_integer(dtype: ir.DataType) -> torch.dtype:
    return getattr(torch, dtype.name.lower())  # type: ignore[no-any-return]


def dtype_or(dtype: Any, default: Any) -> ir.DataType:
    """The dtype asked for; torch's exporter writes a missing one as -1 or None."""
    return ir.DataType(default if dtype is None or dtype == -1 else dtype)


def default_dtype(*values: Any) -> ir.DataType:
    """What torch makes of Python numbers."""
    for value in values:
        if isinstance(value, ir.Value):
            if value.dtype in FLOATS:
                return FLOAT
        elif isinstance(value, float):
            return FLOAT
    if all(isinstance(value, bool) or getattr(value, "dtype", None) == BOOL for value in values):
        return BOOL
    return INT64


def sizes(size: Any) -> ir.Value:
    """A shape, of numbers or values, as an int64 vector."""
    if isinstance(size, ir.Value):
        return cast(size, INT64)
    if all(isinstance(s, int) for s in size):
        return constant([int(s) for s in size])
    parts = [vector(s) for s in size]
    return op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


def onnx_scalar_tensor(value: Any, dtype: Any = None, *_: Any, **__: Any) -> ir.Value:
    """``scalar_tensor``."""
    return op("Identity", number(value, dtype_or(dtype, FLOAT)))


def onnx_full(size: Any, value: Any, dtype: Any = None, *_: Any, **__: Any) -> ir.Value:
    """``full``."""
    return op("Expand", number(value, dtype_or(dtype, default_dtype(value))), sizes(size))


def onnx_full_like(x: ir.Value, value: Any, dtype: Any = None, *_: Any, **__: Any) -> ir.Value:
    """``full_like``."""
    return op("Expand", number(value, dtype_or(dtype, x.dtype)), op("Shape", x))


def onnx_new_full(x: ir.Value, size: Any, value: Any, dtype: Any = None, *_: Any, **__: Any) -> ir.Value:
    """``new_full``."""
    return op("Expand", number(value, dtype_or(dtype, x.dtype)), sizes(size))


def arange(start: Any, end: Any, step: Any, dtype: Any) -> ir.Value:
    """``arange``: the length is counted in float64, as eager counts it, and each element is start plus a multiple."""
    given = (start, end, step)
    dtype = dtype_or(dtype, default_dtype(*given))
    if all(not isinstance(v, float) and getattr(v, "dtype", INT64) not in FLOATS for v in given):
        return cast(op("Range", *(number(v, INT64) for v in given), dtype=INT64), dtype)
    first, last, stride = (number(v, DOUBLE) for v in given)
    count = cast(op("Ceil", op("Div", op("Sub", last, first), stride)), INT64)
    places = op("Range", constant(0), op("Max", count, 0), constant(1), dtype=INT64)
    places.shape = ir.Shape([None])
    if dtype in FLOATS:
        return cast(op("Add", op("Mul", cast(places, DOUBLE), stride), first), dtype)
    whole = [number(v, INT64) for v in (start, step)]
    return cast(op("Add", op("Mul", places, whole[1]), whole[0]), dtype)


def linspace(start: Any, end: Any, steps: Any, dtype: Any = None, *_: Any, **__: Any) -> ir.Value:
    """``linspace``: the first half counted from the start, the second from the end."""
    result = dtype_or(dtype, FLOAT)
    compute = DOUBLE if result not in FLOATS or result == DOUBLE else FLOAT
    first, last = (number(v, result if result not in FLOATS else compute) for v in (start, end))
    first, last = cast(first, compute), cast(last, compute)
    count = number(steps, INT64)
    places = op("Range", constant(0), count, constant(1), dtype=INT64)
    places.shape = ir.Shape([None])
    if steps == 1:
        return cast(op("Expand", first, [1]), result)
    rest = op("Sub", count, 1)
    step = op("Div", op("Sub", last, first), cast(op("Max", rest, 1) if isinstance(steps, ir.Value) else rest, compute))
    up = op("Add", first, op("Mul", step, cast(places, compute)))
    down = op("Sub", last, op("Mul", step, cast(op("Sub", rest, places), compute)))
    first_half = op("Less", places, op("Div", count, 2))
    if isinstance(steps, ir.Value):
        first_half = op("Or", first_half, op("Equal", count, 1))
    return cast(op("Where", first_half, up, down), result)


def _masked_fill(x: ir.Value, mask: ir.Value, value: Any) -> ir.Value:
    return op("Where", mask, number(value, x.dtype), x)


def _where(condition: ir.Value, x: Any, y: Any) -> ir.Value:
    """``where`` with numbers among its operands."""
    like = x if isinstance(x, ir.Value) else y
    kind = like.dtype if isinstance(like, ir.Value) else default_dtype(x, y)
    return op("Where", condition, number(x, kind), number(y, kind))


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.scalar_tensor.default: onnx_scalar_tensor,
    aten.full.default: onnx_full,
    aten.full_like.default: onnx_full_like,
    aten.new_full.default: onnx_new_full,
    aten.fill.Scalar: onnx_full_like,
    aten.fill.Tensor: onnx_full_like,
    aten.arange.default: lambda end, dtype=None, *_, **__: arange(0, end, 1, dtype),
    aten.arange.start: lambda start, end, dtype=None, *_, **__: arange(start, end, 1, dtype),
    aten.arange.start_step: lambda start, end, step=1, dtype=None, *_, **__: arange(start, end, step, dtype),
    aten.linspace.default: linspace,
    aten.masked_fill.Scalar: _masked_fill,
    aten.masked_fill.Tensor: _masked_fill,
    aten.where.ScalarSelf: _where,
    aten.where.ScalarOther: _where,
    aten.where.Scalar: _where,
}
