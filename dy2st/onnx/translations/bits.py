"""``view(dtype)`` of integers as floats of the same width: what a number is by its bits.

Source: IEEE 754-2019, 3.4 Binary interchange format encodings. ONNX has a bit cast from operator set 26 on only.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import onnx_ir as ir
import torch

from dy2st.errors import UntranslatedError
from dy2st.onnx.building import DOUBLE, INT64, cast, constant, op


class _Layout(NamedTuple):
    """The bits of an exponent and of a significand."""

    exponent: int
    significand: int


_KINDS = ir.DataType
_FLOATS = {
    (_KINDS.INT16, _KINDS.FLOAT16): _Layout(5, 10),
    (_KINDS.INT16, _KINDS.BFLOAT16): _Layout(8, 7),
    (_KINDS.INT32, _KINDS.FLOAT): _Layout(8, 23),
    (_KINDS.INT64, _KINDS.DOUBLE): _Layout(11, 52),
}


def onnx_view_dtype(x: ir.Value, dtype: Any) -> ir.Value:
    """``view(dtype)``: computed in doubles, in which all of these floats are exact."""
    to = ir.DataType(dtype)
    if x.dtype == to:
        return op("Identity", x)
    layout = None if x.dtype is None else _FLOATS.get((x.dtype, to))
    if layout is None:
        raise UntranslatedError(
            f"there is no ONNX translation of view() of {x.dtype} as {to}",
            hint="integers can be viewed as floats of the same width; compute the rest with arithmetic",
        )
    bits = cast(x, INT64)
    negative = op("Less", bits, constant(0))
    # Without the sign bit; two steps, since 2**63 is no int64.
    half = constant((1 << (layout.exponent + layout.significand)) - 1)
    magnitude = op("Where", negative, op("Add", op("Add", bits, half), constant(1)), bits)
    unit = constant(1 << layout.significand)
    exponent = op("Div", magnitude, unit)
    significand = cast(op("Sub", magnitude, op("Mul", exponent, unit)), DOUBLE)
    most = (1 << layout.exponent) - 1
    subnormal = op("Equal", exponent, constant(0))
    scale = op("Add", op("Where", subnormal, constant(1), exponent), constant(1 - (most >> 1) - 1 - layout.significand))
    whole = op(
        "Add", significand, op("Where", subnormal, constant(0.0, DOUBLE), constant(2.0**layout.significand, DOUBLE))
    )
    # Half of the exponent at a time: the least of all powers of two is no normal number.
    first = op("Div", scale, constant(2))
    powers = [op("Pow", constant(2.0, DOUBLE), cast(part, DOUBLE)) for part in (first, op("Sub", scale, first))]
    value = op("Mul", op("Mul", whole, powers[0]), powers[1])
    special = op(
        "Where", op("Equal", significand, constant(0.0, DOUBLE)), constant(math.inf, DOUBLE), constant(math.nan, DOUBLE)
    )
    value = op("Where", op("Equal", exponent, constant(most)), special, value)
    return cast(op("Where", negative, op("Neg", value), value), to)


TRANSLATIONS: dict[Any, Any] = {torch.ops.aten.view.dtype: onnx_view_dtype}
