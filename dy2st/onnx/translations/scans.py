"""Cumulative operations along a dimension.

ONNX has only ``CumSum``; the others are a ``Loop`` over the slices, one operation each, as eager computes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from dy2st.errors import UntranslatedError
from dy2st.onnx.building import (
    BFLOAT16,
    BOOL,
    FLOAT,
    FLOAT16,
    FLOATS,
    INT32,
    INT64,
    cast,
    constant,
    is_float,
    length,
    loop,
    op,
    rank,
    size,
)

Step = Callable[[ir.Value, ir.Value, Sequence[ir.Value]], Sequence[ir.Value]]


def scan(x: ir.Value, dim: int, start: Sequence[ir.Value], step: Step) -> list[ir.Value]:
    """The states after each slice of ``x`` along ``dim``, in the shape of ``x``.

    ``start`` are the states before the first slice, 0-d; ``step(i, slice, states)`` gives the next ones.
    """
    dims = rank(x)
    if dims == 0:
        return list(step(constant(0), x, start))
    dim %= dims
    trips = op("Squeeze", length(x, dim), [0])

    def body(i: ir.Value, state: Sequence[ir.Value]) -> tuple[None, Sequence[ir.Value], Sequence[ir.Value]]:
        after = step(i, op("Gather", x, i, axis=dim), state)
        return None, after, [op("Identity", value) for value in after]

    found = []
    for stacked in loop(trips, start, body)[len(start) :]:
        rows = stacked
        if size(x, dim) in {None, 0}:
            # With no slice at all the loop can't know the shape.
            shape = op("Shape", x)
            front = op("Gather", shape, [dim, *range(dim), *range(dim + 1, dims)], axis=0) if dim else shape
            rows = op("Reshape", rows, front, allowzero=1)
        order = [*range(1, dim + 1), 0, *range(dim + 1, dims)]
        found.append(op("Transpose", rows, perm=order) if dim else rows)
    return found


def _converted(x: ir.Value, dtype: Any) -> ir.Value:
    """``x`` in the dtype asked for; eager adds and multiplies small integers as int64."""
    if isinstance(dtype, int) and dtype > 0:
        return cast(x, ir.DataType(dtype))
    return x if is_float(x) else cast(x, INT64)


def onnx_cumprod(x: ir.Value, dim: int, dtype: Any = None) -> ir.Value:
    """``cumprod``."""
    x = _converted(x, dtype)
    one = constant(1.0 if is_float(x) else 1, x.dtype)
    return scan(x, dim, [one], lambda _, row, state: [op("Mul", state[0], row)])[0]


def onnx_logcumsumexp(x: ir.Value, dim: int) -> ir.Value:
    """``logcumsumexp``, each sum from the one before it so that nothing overflows."""
    _require_floats("logcumsumexp", x)

    def step(_: ir.Value, row: ir.Value, state: Sequence[ir.Value]) -> Sequence[ir.Value]:
        return [log_add_exp(state[0], row)]

    return scan(x, dim, [constant(float("-inf"), x.dtype)], step)[0]


def _require_floats(name: str, *values: ir.Value) -> None:
    """Refuse integers, for which torch traces an operator that eager does not compute.

    Raises:
        UntranslatedError: a value is not of floating-point numbers.
    """
    for value in values:
        if value.dtype is not None and not is_float(value):
            raise UntranslatedError(
                f"torch.{name} is not implemented for {value.dtype.name.lower()}",
                hint=f"convert the operands first: torch.{name}(x.float(), ...)",
            )


def log_add_exp(x: ir.Value, y: ir.Value, base: float | None = None) -> ir.Value:
    """``log(exp(x) + exp(y))``; of two equal infinities it is that infinity.

    The lesser is taken from the greater as a finite number: an infinity less itself would be NaN. NaN comes out as the
    greater of both.
    """
    high, low = op("Max", x, y), op("Min", x, y)
    assert high.dtype is not None
    apart = op("Sub", low, op("Clip", high, float(high.dtype.min), float(high.dtype.max)))
    if base is None:
        more = op("Log", op("Add", op("Exp", apart), 1.0))
    else:
        wide = FLOAT if high.dtype in {FLOAT16, BFLOAT16} else high.dtype  # in which log(base) / log(base) is 1
        more = op("Log", op("Add", op("Pow", base, apart), 1.0))
        more = cast(op("Div", cast(more, wide), math.log(base)), high.dtype)
    return op("Add", high, more)


def _checked(name: str, x: ir.Value, y: ir.Value, base: float | None) -> ir.Value:
    _require_floats(name, x, y)
    return log_add_exp(x, y, base)


def _extreme(x: ir.Value, dim: int, kind: str) -> list[ir.Value]:
    """The running extreme and its last place; NaN, once met, stays.

    What holds for windows of 1 element up to each one holds for windows of 2, 4, 8... elements after so many trips: the
    extreme of two windows that lie side by side is one of theirs, and of equal ones the later.

    Source: Hillis, Steele, "Data Parallel Algorithms", 1986.
    """
    number = cast(x, ir.DataType.UINT8) if x.dtype == BOOL else x
    dims, count = rank(x), length(x, dim) if rank(x) else constant([1])
    places = op("Range", 0, op("Squeeze", count, [0]), 1, dtype=INT64) if dims else constant(0)
    if dims == 0:
        return [x, places]
    dim %= dims
    if dims > 1:
        column = op("Reshape", places, [-1, *[1] * (dims - 1 - dim)])
        places = op("Expand", column, op("Shape", x), dtype=INT64)

    def body(_: ir.Value, state: Sequence[ir.Value]) -> tuple[ir.Value, Sequence[ir.Value], Sequence[ir.Value]]:
        width, *found = state
        begin, end = constant([0]), constant([2**63 - 1])
        heads = [op("Slice", each, begin, width, [dim]) for each in found]
        earlier = [op("Slice", each, begin, op("Neg", width), [dim]) for each in found]
        later = [op("Slice", each, width, end, [dim]) for each in found]
        better = op(kind, later[0], earlier[0])
        if is_float(number):
            better = op("Or", better, op("IsNaN", later[0]))
        chosen = [op("Where", better, new, old) for new, old in zip(later, earlier, strict=True)]
        if number.dtype in {INT32, INT64}:
            chosen[0] = op("Max" if kind == "GreaterOrEqual" else "Min", later[0], earlier[0])
        wider = op("Add", width, width)
        return go_on(wider), [wider, *(op("Concat", *each, axis=dim) for each in zip(heads, chosen, strict=True))], []

    def go_on(width: ir.Value) -> ir.Value:
        return op("Squeeze", op("Less", width, count), [0])

    one = constant([1])
    _, values, places = loop(None, [one, number, places], body, go_on(one))
    return [cast(values, x.dtype), places]


def limits(dtype: Any) -> tuple[float, float]:
    """The least and the greatest value of a dtype: infinite for floats, ints for integers."""
    if dtype in FLOATS:
        return -math.inf, math.inf
    info = np.iinfo(ir.DataType(dtype).numpy())
    return int(info.min), int(info.max)


TRANSLATIONS: dict[Any, Any] = {
    torch.ops.aten.cumprod.default: onnx_cumprod,
    torch.ops.aten.logcumsumexp.default: onnx_logcumsumexp,
    torch.ops.aten.cummax.default: lambda x, dim: _extreme(x, dim, "GreaterOrEqual"),
    torch.ops.aten.cummin.default: lambda x, dim: _extreme(x, dim, "LessOrEqual"),
    torch.ops.aten.logaddexp.default: lambda x, y: _checked("logaddexp", x, y, None),
    torch.ops.aten.logaddexp2.default: lambda x, y: _checked("logaddexp2", x, y, 2.0),
}
