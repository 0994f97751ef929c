"""Special functions, computed in float64 and rounded once.

Sources: the digamma function by its recurrence and asymptotic series (Abramowitz and Stegun, 6.3.5 and 6.3.18); the
inverse error function from Giles' single-precision polynomials ("Approximating the erfinv function", 2010) and two
Newton steps; Bessel's ``I0`` and ``I1`` by their power series (9.6.10) and, far out, asymptotic series (9.7.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import DOUBLE, FLOAT, cast, constant, is_float, op
from dy2st.onnx.translations import float64
from dy2st.onnx.translations.float64 import polynomial

_GILES_NEAR = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_GILES_FAR = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)
# B(2k) / 2k
_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_SHIFT = 8  # the asymptotic series is exact to float64 from here on


def in_float64(function: Callable[[ir.Value], ir.Value]) -> Callable[[ir.Value], ir.Value]:
    """A translation that computes in float64 and rounds once; integers become float32."""

    def translation(x: ir.Value) -> ir.Value:
        return cast(function(cast(x, DOUBLE)), x.dtype if is_float(x) else FLOAT)

    return translation


def digamma(x: ir.Value) -> ir.Value:
    """The logarithmic derivative of the gamma function."""
    left = op("Less", x, 0.5)
    right = op("Where", left, op("Sub", 1.0, x), x)
    shifted, total = right, None
    for _ in range(_SHIFT):
        term = op("Reciprocal", shifted)
        total = term if total is None else op("Add", total, term)
        shifted = op("Add", shifted, 1.0)
    square = op("Reciprocal", op("Mul", shifted, shifted))
    series = op("Mul", polynomial(square, _BERNOULLI), square)
    value = op("Sub", op("Sub", op("Log", shifted), op("Div", 0.5, shifted)), op("Add", total, series))
    turn = op("Mul", op("Sub", x, op("Round", x)), math.pi)
    pole = op("And", op("Equal", x, op("Floor", x)), left)
    at_pole = op("Where", op("Equal", x, 0.0), op("Neg", op("Reciprocal", x)), math.nan)
    mirrored = op("Sub", value, op("Div", math.pi, op("Div", op("Sin", turn), op("Cos", turn))))
    found = op("Where", pole, at_pole, op("Where", left, mirrored, value))
    return op("Where", op("IsInf", x), op("Where", left, math.nan, x), found)


def erfinv(x: ir.Value) -> ir.Value:
    """The inverse of the error function."""
    size = op("Abs", x)
    rest = op("Sub", 1.0, size)
    depth = op("Neg", op("Log", op("Mul", rest, op("Add", size, 1.0))))
    near = polynomial(op("Sub", depth, 2.5), _GILES_NEAR)
    far = polynomial(op("Sub", op("Sqrt", op("Max", depth, 0.0)), 3.0), _GILES_FAR)
    value = op("Mul", op("Where", op("Less", depth, 5.0), near, far), size)
    for _ in range(2):
        slope = op("Mul", op("Exp", op("Neg", op("Mul", value, value))), 2 / math.sqrt(math.pi))
        tail = op("Sub", rest, float64.erfc(value))
        near_miss = op("Sub", float64.erf(value), size)
        miss = op("Where", op("Less", size, 0.5), near_miss, tail)
        value = op("Sub", value, op("Div", miss, slope))
    value = op("Where", op("Equal", size, 1.0), math.inf, value)
    return op("Where", op("Less", x, 0.0), op("Neg", value), value)


def ndtri(x: ir.Value) -> ir.Value:
    """The inverse of the normal distribution function."""
    return op("Mul", erfinv(op("Sub", op("Mul", x, 2.0), 1.0)), math.sqrt(2.0))


def _bessel(order: int, *, scaled: bool) -> Callable[[ir.Value], ir.Value]:
    """``I0`` or ``I1``, or that times ``exp(-|x|)``."""
    power = [1 / (math.factorial(k) * math.factorial(k + order) * 4**k * 2**order) for k in range(40)]
    asymptotic = [1.0]
    for k in range(1, 14):
        asymptotic.append(-asymptotic[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))

    def function(x: ir.Value) -> ir.Value:
        size = op("Abs", x)
        square = op("Mul", x, x)
        near = polynomial(square, power)
        near = op("Mul", near, x) if order else near
        far = op("Div", polynomial(op("Reciprocal", size), asymptotic), op("Sqrt", op("Mul", size, 2 * math.pi)))
        far = op("Mul", far, op("Sign", x)) if order else far
        grown = op("Exp", size)
        if scaled:
            near = op("Div", near, grown)
        else:
            # In two factors: the exponential overflows before their product does.
            root = op("Exp", op("Mul", size, 0.5))
            far = op("Mul", op("Mul", far, root), root)
        return op("Where", op("Greater", size, constant(20.0, DOUBLE)), far, near)

    return function


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.lgamma.default: in_float64(float64.lgamma),
    aten.digamma.default: in_float64(digamma),
    aten.special_digamma.default: in_float64(digamma),
    aten.erfc.default: in_float64(float64.erfc),
    aten.special_erfc.default: in_float64(float64.erfc),
    aten.special_erfcx.default: in_float64(float64.erfcx),
    aten.erfinv.default: in_float64(erfinv),
    aten.special_erfinv.default: in_float64(erfinv),
    aten.special_ndtri.default: in_float64(ndtri),
    aten.i0.default: in_float64(_bessel(0, scaled=False)),
    aten.special_i0e.default: in_float64(_bessel(0, scaled=True)),
    aten.special_i1.default: in_float64(_bessel(1, scaled=False)),
    aten.special_i1e.default: in_float64(_bessel(1, scaled=True)),
}
