"""Elementwise functions: what torch's exporter lacks, or computes otherwise for NaN, zeros or integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, INT32, cast, constant, is_float, op, scalar_like
from dy2st.onnx.translations import float64
from dy2st.onnx.translations.elementwise_arithmetic import truncated


def onnx_sign(x: ir.Value) -> ir.Value:
    """``sign``; of NaN it is zero."""
    if x.dtype == BOOL:
        return op("Identity", x)
    return op("Where", op("IsNaN", x), 0.0, op("Sign", x)) if is_float(x) else op("Sign", x)


def onnx_sign_bit(x: ir.Value) -> ir.Value:
    """``signbit``: of a negative zero too, which its reciprocal tells."""
    if x.dtype == BOOL:
        return op("And", x, op("Not", x))
    return op("Less", op("Add", x, op("Reciprocal", x)) if is_float(x) else x, 0)


def onnx_copysign(x: ir.Value, y: Any) -> ir.Value:
    """``copysign``."""
    x = x if is_float(x) else cast(x, FLOAT)
    size = op("Abs", x)
    if not isinstance(y, ir.Value):
        return op("Neg", size) if math.copysign(1, y) < 0 else size
    return op("Where", onnx_sign_bit(y), op("Neg", size), size)


def onnx_heaviside(x: ir.Value, at_zero: ir.Value) -> ir.Value:
    """``heaviside``; of NaN it is zero."""
    return op("Where", op("Equal", x, 0), at_zero, cast(op("Greater", x, 0), x.dtype))


def _number_or(x: ir.Value, y: ir.Value, kind: str) -> ir.Value:
    """The extreme of two, the one that is not NaN if the other is."""
    if not is_float(x):
        return op(kind, x, y)
    first, second = (op("Where", op("IsNaN", v), w, v) for v, w in ((x, y), (y, x)))
    return op(kind, first, second)


def onnx_atan2(y: ir.Value, x: ir.Value) -> ir.Value:
    """``atan2``, with eager's results for zeros of either sign and for infinities."""
    y, x = (v if is_float(v) else cast(v, FLOAT) for v in (y, x))
    up, across = op("Abs", y), op("Abs", x)
    same = op("Equal", up, across)
    one_or_none = op("Where", op("Equal", up, 0.0), 0.0, constant(1.0, up.dtype or FLOAT))
    angle = op("Atan", op("Where", same, one_or_none, op("Div", up, across)))
    angle = op("Where", onnx_sign_bit(x), op("Sub", math.pi, angle), angle)
    return op("Where", onnx_sign_bit(y), op("Neg", angle), angle)


def onnx_hypot(x: ir.Value, y: ir.Value) -> ir.Value:
    """``hypot``, without overflow of the squares."""
    x, y = op("Abs", x), op("Abs", y)
    long, short = op("Max", x, y), op("Min", x, y)
    ratio = op("Div", short, long)
    found = op("Mul", long, op("Sqrt", op("Add", op("Mul", ratio, ratio), 1.0)))
    infinite = op("Or", op("IsInf", x), op("IsInf", y))
    return op("Where", infinite, math.inf, op("Where", op("Equal", long, 0.0), long, found))


def onnx_nan_to_num(x: ir.Value, nan: Any = None, posinf: Any = None, neginf: Any = None) -> ir.Value:
    """``nan_to_num``; by default infinities become the greatest finite numbers of the dtype."""
    if not is_float(x):
        return op("Identity", x)
    assert x.dtype is not None
    greatest = float(torch.finfo(_torch_dtype(x.dtype)).max)
    high, low = (greatest if posinf is None else posinf), (-greatest if neginf is None else neginf)
    number = op("Where", op("IsNaN", x), scalar_like(0.0 if nan is None else nan, x), x)
    number = op("Where", op("IsInf", x, detect_negative=0), scalar_like(high, x), number)
    return op("Where", op("IsInf", x, detect_positive=0), scalar_like(low, x), number)


def _torch_dtype(dtype: ir.DataType) -> torch.dtype:
    names = {FLOAT: torch.float32, DOUBLE: torch.float64, ir.DataType.FLOAT16: torch.float16}
    return names.get(dtype, torch.bfloat16)


def _logarithm(base: float) -> Callable[[ir.Value], ir.Value]:
    """``log2`` or ``log10``, exact for powers of the base: a quotient of logarithms in float64, rounded once."""

    def translation(x: ir.Value) -> ir.Value:
        wide = cast(x, DOUBLE)
        found = op("Div", op("Log", wide), math.log(base))
        if x.dtype != DOUBLE:
            return cast(found, x.dtype if is_float(x) else FLOAT)
        whole = op("Round", found)
        return op("Where", op("Equal", op("Pow", constant(base, DOUBLE), whole), x), whole, found)

    return translation


def _scaled(factor: float) -> Callable[[ir.Value], ir.Value]:
    """A product with a constant of the dtype itself."""
    return lambda x: op("Mul", x if is_float(x) else cast(x, FLOAT), factor)


def onnx_sinc(x: ir.Value) -> ir.Value:
    """``sinc``."""
    x = x if is_float(x) else cast(x, FLOAT)
    turn = op("Mul", x, math.pi)
    return op("Where", op("Equal", x, 0.0), 1.0, op("Div", op("Sin", turn), turn))


def _of_floats(function: Callable[[ir.Value], ir.Value]) -> Callable[[ir.Value], ir.Value]:
    """A translation that gives a float32 for integers."""
    return lambda x: function(x if is_float(x) else cast(x, FLOAT))


def _unless_integer(kind: str) -> Callable[[ir.Value], ir.Value]:
    """A rounding, which leaves integers alone."""
    return lambda x: op(kind if is_float(x) else "Identity", x)


def _is_number(x: ir.Value, *, finite: bool) -> ir.Value:
    """Whether elements are finite, or not NaN; of integers all are."""
    if not is_float(x):
        return op("Equal", x, x)
    if not finite:
        return op("Not", op("IsNaN", x))
    # Infinity less itself is NaN, which equals nothing.
    return op("Equal", op("Sub", x, x), 0.0)


def _infinite(x: ir.Value, **attributes: int) -> ir.Value:
    return op("IsInf", x, **attributes) if is_float(x) else op("Not", op("Equal", x, x))


def onnx_frexp(x: ir.Value) -> list[ir.Value]:
    """``frexp``: the mantissa from 0.5 up to 1, and the exponent as int32."""
    wide = cast(x, DOUBLE)
    size = op("Abs", wide)
    plain = op("Or", op("Equal", size, 0.0), op("Not", _is_number(wide, finite=True)))
    guess = op("Add", op("Floor", op("Div", op("Log", op("Where", plain, 1.0, size)), math.log(2.0))), 1.0)
    # The logarithm may be off by one unit next to a power of two.
    mantissa = op("Div", size, op("Pow", constant(2.0, DOUBLE), guess))
    over, under = op("GreaterOrEqual", mantissa, 1.0), op("Less", mantissa, 0.5)
    exponent = op("Sub", op("Add", guess, cast(over, DOUBLE)), cast(under, DOUBLE))
    mantissa = op("Where", over, op("Mul", mantissa, 0.5), op("Where", under, op("Mul", mantissa, 2.0), mantissa))
    mantissa = op("Where", plain, wide, op("Mul", mantissa, op("Sign", wide)))
    return [cast(mantissa, x.dtype), cast(op("Where", plain, 0.0, exponent), INT32)]


def onnx_rrelu(
    x: ir.Value, _: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, *__: Any
) -> Any:
    """``rrelu`` in eval mode: a leaky relu with the mean slope."""
    if training:
        raise NotImplementedError("rrelu draws random slopes in training mode")
    if not isinstance(lower, ir.Value) and not isinstance(upper, ir.Value):
        return op("LeakyRelu", x, alpha=(lower + upper) / 2), op("Identity", x)
    slope = op("Mul", op("Add", scalar_like(lower, x), scalar_like(upper, x)), 0.5)
    return op("Where", op("Less", x, 0.0), op("Mul", x, slope), x), op("Identity", x)


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.sign.default: onnx_sign,
    aten.sgn.default: onnx_sign,
    aten.signbit.default: onnx_sign_bit,
    aten.copysign.Tensor: onnx_copysign,
    aten.copysign.Scalar: onnx_copysign,
    aten.heaviside.default: onnx_heaviside,
    aten.fmax.default: lambda x, y: _number_or(x, y, "Max"),
    aten.fmin.default: lambda x, y: _number_or(x, y, "Min"),
    aten.atan2.default: onnx_atan2,
    aten.hypot.default: onnx_hypot,
    aten.nan_to_num.default: onnx_nan_to_num,
    aten.frexp.Tensor: onnx_frexp,
    aten.floor.default: _unless_integer("Floor"),
    aten.ceil.default: _unless_integer("Ceil"),
    aten.round.default: _unless_integer("Round"),
    aten.trunc.default: truncated,
    aten.fix.default: truncated,
    aten.isnan.default: lambda x: op("IsNaN", x) if is_float(x) else op("Not", op("Equal", x, x)),
    aten.isfinite.default: lambda x: _is_number(x, finite=True),
    aten.isinf.default: _infinite,
    aten.isposinf.default: lambda x: _infinite(x, detect_negative=0),
    aten.isneginf.default: lambda x: _infinite(x, detect_positive=0),
    aten.log2.default: _logarithm(2.0),
    aten.log10.default: _logarithm(10.0),
    aten.deg2rad.default: _scaled(math.pi / 180),
    aten.rad2deg.default: _scaled(180 / math.pi),
    aten.sinc.default: onnx_sinc,
    aten.special_sinc.default: onnx_sinc,
    aten.expm1.default: _of_floats(float64.expm1),
    aten.special_expm1.default: _of_floats(float64.expm1),
    aten.log1p.default: _of_floats(float64.log1p),
    aten.special_log1p.default: _of_floats(float64.log1p),
    aten.rrelu_with_noise_functional.default: onnx_rrelu,
}


# Unit roundoff, least positive and largest number.
LIMITS = {
    ir.DataType.FLOAT: (2.0**-24, 2.0**-149, (2 - 2.0**-23) * 2.0**127),
    ir.DataType.DOUBLE: (2.0**-53, 2.0**-1074, (2 - 2.0**-52) * 2.0**1023),
    ir.DataType.FLOAT16: (2.0**-11, 2.0**-24, (2 - 2.0**-10) * 2.0**15),
    ir.DataType.BFLOAT16: (2.0**-8, 2.0**-133, (2 - 2.0**-7) * 2.0**127),
}


def onnx_nextafter(x: ir.Value, y: ir.Value) -> ir.Value:
    """``nextafter(x, y)`` of floats; the short ones step in float32, and are rounded to the next one."""
    assert x.dtype is not None
    u, eta, largest = LIMITS[x.dtype]
    if x.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        return cast(_next(cast(x, FLOAT), cast(y, FLOAT), u, eta, largest), x.dtype)
    return _next(x, y, u, eta, largest)


def _next(x: ir.Value, y: ir.Value, u: float, eta: float, largest: float) -> ir.Value:
    """The next one to x in the direction of y, before it is rounded to a dtype with these limits.

    Source: Rump, Zimmermann, Boldo, Melquiond, Computing predecessor and successor in rounding to nearest, 2009.
    """
    # The greater of both in place of their sum, from which an optimiser would drop the least float as zero.
    step = op("Max", op("Mul", op("Abs", x), u * (1 + 2 * u)), eta)
    sign = op("Sign", op("Sub", y, x))
    # From an infinity the way is to the largest number.
    finite = op("Clip", x, -largest, largest)
    moved = op("Add", finite, op("Mul", sign, op("Where", op("IsInf", x), 0.0, step)))
    found = op("Where", op("Equal", x, y), y, moved)
    # NaN is neither equal nor on either side; the sum keeps it.
    nan = op("Or", op("IsNaN", x), op("IsNaN", y))
    return op("Where", nan, op("Add", x, y), found)
