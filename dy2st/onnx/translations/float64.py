"""What onnxruntime computes for float32 only, for float64: written with the float64 kernels that it has.

Those are the arithmetic, ``Exp``, ``Log``, ``Sqrt``, ``Sin``, ``Cos``, ``Tanh``. Each function here is good to a few
units in the last place of float64.

Sources: ``erf`` and ``erfc`` by Chebyshev interpolation of ``erf(x) / x`` and of ``log(erfc(x) exp(x^2) / t)`` with
``t = 2 / (2 + x)`` (the form of Press et al., Numerical Recipes, 6.2.2), at 60 digits; ``expm1`` and ``log1p`` by
Kahan's corrections (Higham, Accuracy and Stability of Numerical Algorithms, 1.14.1); ``lgamma`` by Lanczos'
approximation with g = 7 and 9 terms; the rest by identities in any text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import onnx_ir as ir

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, cast, constant, op

_ERF = (
    0.9654687386698673,
    -0.1405360890227171,
    0.019852496688984218,
    -0.0022854855611440855,
    0.00021751715603563488,
    -1.75371694412802e-05,
    1.2233827638093572e-06,
    -7.51156925108609e-08,
    4.115751500265885e-09,
    -2.035231956483527e-10,
    9.21125018742823e-12,
    -3.80659122412214e-13,
)
_ERFC = (
    -0.6717940840566922,
    0.6726432239776567,
    0.047343306841863754,
    -0.046895610231160824,
    -0.00987268936410846,
    0.00882493855611383,
    0.0017589335075480397,
    -0.0023458124784660516,
    -0.00014624628859718252,
    0.0006736785371369921,
    -9.373894209180262e-05,
    -0.00017430116360991256,
    7.141808767204543e-05,
    3.1737328155349395e-05,
    -3.023780825572967e-05,
    1.6080205095439494e-07,
    8.662494482986981e-06,
    -2.994294118363313e-06,
    -1.4094127307024207e-06,
    1.3137199073509803e-06,
    -4.1484920834124593e-08,
    -3.086559820402206e-07,
    7.746001345360312e-08,
    3.675878538183882e-08,
    -1.2776506237493277e-08,
    -1.1141466421901909e-09,
)
_LANCZOS = (
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)


def polynomial(x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """The polynomial with these coefficients, the constant first, by Horner's rule."""
    *rest, last = coefficients
    value = op("Mul", x, last)
    for coefficient in reversed(rest[1:]):
        value = op("Mul", op("Add", value, coefficient), x)
    return op("Add", value, rest[0])


def expm1(x: ir.Value) -> ir.Value:
    """``exp(x) - 1``, exact for small ``x`` too."""
    raised = op("Exp", x)
    less = op("Sub", raised, 1.0)
    exact = op("Div", op("Mul", less, x), op("Log", raised))
    small = op("Where", op("Equal", raised, 1.0), x, exact)
    return op("Where", op("Less", op("Abs", x), 1.0), small, less)


def log1p(x: ir.Value) -> ir.Value:
    """``log(1 + x)``, exact for small ``x`` too."""
    more = op("Add", x, 1.0)
    plain = op("Log", more)
    lost = op("Sub", x, op("Sub", more, 1.0))
    return op("Where", op("Less", op("Abs", x), 0.5), op("Add", plain, op("Div", lost, more)), plain)


def atan(x: ir.Value) -> ir.Value:
    """The inverse tangent: one Newton step from the float32 kernel's value."""
    steep = op("Greater", op("Abs", x), 1.0)
    slope = op("Where", steep, op("Reciprocal", x), x)
    guess = cast(op("Atan", cast(slope, FLOAT)), DOUBLE)
    sine, cosine = op("Sin", guess), op("Cos", guess)
    wrong = op("Sub", op("Mul", slope, cosine), sine)
    angle = op("Add", guess, op("Div", wrong, op("Add", cosine, op("Mul", slope, sine))))
    quarter = op("Where", op("Less", x, 0.0), constant(-math.pi / 2, DOUBLE), constant(math.pi / 2, DOUBLE))
    return op("Where", steep, op("Sub", quarter, angle), angle)


def asin(x: ir.Value) -> ir.Value:
    """The inverse sine."""
    cosine = op("Sqrt", op("Mul", op("Sub", 1.0, x), op("Add", x, 1.0)))
    return op("Mul", atan(op("Div", x, op("Add", cosine, 1.0))), 2.0)


def acos(x: ir.Value) -> ir.Value:
    """The inverse cosine."""
    return op("Mul", atan(op("Div", op("Sqrt", op("Sub", 1.0, x)), op("Sqrt", op("Add", x, 1.0)))), 2.0)


def tan(x: ir.Value) -> ir.Value:
    """The tangent."""
    return op("Div", op("Sin", x), op("Cos", x))


def _halves(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``exp(x) / 2`` and ``exp(-x) / 2``; the first overflows no earlier than it must."""
    root = op("Exp", op("Mul", x, 0.5))
    half = op("Mul", root, 0.5)
    return op("Mul", half, root), op("Div", op("Div", 0.5, root), root)


def sinh(x: ir.Value) -> ir.Value:
    """The hyperbolic sine."""
    up, down = _halves(x)
    less = expm1(x)
    small = op("Mul", op("Add", less, op("Div", less, op("Add", less, 1.0))), 0.5)
    return op("Where", op("Less", op("Abs", x), 1.0), small, op("Sub", up, down))


def cosh(x: ir.Value) -> ir.Value:
    """The hyperbolic cosine."""
    return op("Add", *_halves(x))


def _log_of_double(x: ir.Value) -> ir.Value:
    return op("Add", op("Log", x), math.log(2.0))


def asinh(x: ir.Value) -> ir.Value:
    """The inverse hyperbolic sine."""
    size = op("Abs", x)
    square = op("Mul", size, size)
    root = op("Sqrt", op("Add", square, 1.0))
    near = log1p(op("Add", size, op("Div", square, op("Add", root, 1.0))))
    return op("Mul", op("Sign", x), op("Where", op("Greater", size, 1e8), _log_of_double(size), near))


def acosh(x: ir.Value) -> ir.Value:
    """The inverse hyperbolic cosine; NaN below 1."""
    over = op("Sub", x, 1.0)
    near = log1p(op("Add", over, op("Mul", op("Sqrt", over), op("Sqrt", op("Add", over, 2.0)))))
    return op("Where", op("Greater", x, 1e8), _log_of_double(x), near)


def atanh(x: ir.Value) -> ir.Value:
    """The inverse hyperbolic tangent."""
    return op("Mul", log1p(op("Div", op("Mul", x, 2.0), op("Sub", 1.0, x))), 0.5)


def _scaled_tail(size: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``t`` and the exponent ``q`` with ``erfc(x) exp(x^2) = t exp(q)``, for ``x >= 0``."""
    t = op("Div", 2.0, op("Add", size, 2.0))
    return t, polynomial(op("Sub", op("Mul", t, 2.0), 1.0), _ERFC)


def erfc(x: ir.Value) -> ir.Value:
    """One less the error function, to the last digits far out too."""
    size = op("Abs", x)
    t, exponent = _scaled_tail(size)
    tail = op("Mul", t, op("Exp", op("Sub", exponent, op("Mul", size, size))))
    return op("Where", op("Less", x, 0.0), op("Sub", 2.0, tail), tail)


def erfcx(x: ir.Value) -> ir.Value:
    """``exp(x^2) erfc(x)``."""
    size = op("Abs", x)
    t, exponent = _scaled_tail(size)
    scaled = op("Mul", t, op("Exp", exponent))
    mirrored = op("Sub", op("Mul", op("Exp", op("Mul", x, x)), 2.0), scaled)
    return op("Where", op("Less", x, 0.0), mirrored, scaled)


def erf(x: ir.Value) -> ir.Value:
    """The error function."""
    square = op("Mul", x, x)
    near = op("Mul", x, polynomial(op("Sub", op("Mul", square, 2.0), 1.0), _ERF))
    return op("Where", op("Less", square, 1.0), near, op("Sub", 1.0, erfc(x)))


def _lgamma_right(x: ir.Value) -> ir.Value:
    """The logarithm of the gamma function, for ``x >= 0.5``."""
    z = op("Sub", x, 1.0)
    total = None
    for i, coefficient in enumerate(_LANCZOS, 1):
        term = op("Div", coefficient, op("Add", z, float(i)))
        total = op("Add", total, term) if total is not None else op("Add", term, 0.99999999999980993)
    assert total is not None
    t = op("Add", z, 7.5)
    power = op("Mul", op("Add", z, 0.5), op("Sub", op("Log", t), 1.0))
    # The constant holds the difference of t and z + 1/2, which is 7.
    return op("Add", op("Add", power, 0.5 * math.log(2 * math.pi) - 7.0), op("Log", total))


def lgamma(x: ir.Value) -> ir.Value:
    """The logarithm of the absolute value of the gamma function."""
    left = op("Less", x, 0.5)
    right = _lgamma_right(op("Where", left, op("Sub", 1.0, x), x))
    # Far out the logarithm of the sum is nothing beside the power; infinity less infinity would be NaN.
    far = op("IsInf", x)
    beside = op("Sub", x, op("Round", x))
    sine = op("Abs", op("Sin", op("Mul", beside, math.pi)))
    mirrored = op("Sub", op("Sub", math.log(math.pi), op("Log", sine)), right)
    return op("Where", far, math.inf, op("Where", left, mirrored, right))


def softplus(x: ir.Value) -> ir.Value:
    """``log(1 + exp(x))``, without overflow."""
    return op("Add", op("Max", x, 0.0), log1p(op("Exp", op("Neg", op("Abs", x)))))


# ---- operators of ONNX, with their attributes


def _elu(x: ir.Value, alpha: float = 1.0) -> ir.Value:
    below = expm1(x) if alpha == 1 else op("Mul", expm1(x), alpha)
    return op("Where", op("Less", x, 0.0), below, x)


def _celu(x: ir.Value, alpha: float = 1.0) -> ir.Value:
    below = expm1(op("Div", x, alpha))
    return op("Where", op("Less", x, 0.0), below if alpha == 1 else op("Mul", below, alpha), x)


def _selu(x: ir.Value, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> ir.Value:
    return op("Mul", op("Where", op("Less", x, 0.0), op("Mul", expm1(x), alpha), x), gamma)


def _leaky_relu(x: ir.Value, alpha: float = 0.01) -> ir.Value:
    return op("Where", op("Less", x, 0.0), op("Mul", x, alpha), x)


def _hard_sigmoid(x: ir.Value, alpha: float = 0.2, beta: float = 0.5) -> ir.Value:
    return op("Min", op("Max", op("Add", op("Mul", x, alpha), beta), 0.0), 1.0)


def _hard_swish(x: ir.Value) -> ir.Value:
    return op("Mul", x, op("Div", op("Min", op("Max", op("Add", x, 3.0), 0.0), 6.0), 6.0))


def _gelu(x: ir.Value, approximate: str = "none") -> ir.Value:
    if approximate == "tanh":
        cube = op("Mul", op("Mul", x, x), x)
        slope = op("Mul", op("Add", op("Mul", cube, 0.044715), x), math.sqrt(2 / math.pi))
        share = op("Add", op("Tanh", slope), 1.0)
    else:
        share = erfc(op("Mul", x, -math.sqrt(0.5)))
    return op("Mul", op("Mul", x, 0.5), share)


def _log_softmax(x: ir.Value, axis: int = -1) -> ir.Value:
    # The kernel for float64 passes over NaN.
    apart = op("Sub", x, op("ReduceMax", x, [axis], keepdims=1))
    return op("Sub", apart, op("Log", op("ReduceSum", op("Exp", apart), [axis], keepdims=1)))


EXPANSIONS: dict[str, Callable[..., ir.Value]] = {
    "Acos": acos,
    "Acosh": acosh,
    "Asin": asin,
    "Asinh": asinh,
    "Atan": atan,
    "Atanh": atanh,
    "Cosh": cosh,
    "Erf": erf,
    "Sinh": sinh,
    "Tan": tan,
    "Softplus": softplus,
    "Mish": lambda x: op("Mul", x, op("Tanh", softplus(x))),
    "Softsign": lambda x: op("Div", x, op("Add", op("Abs", x), 1.0)),
    "Celu": _celu,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _log_softmax,
    "NonZero": lambda x: op("NonZero", cast(x, BOOL)),
    "Relu": lambda x: op("Max", x, 0),
    "Selu": _selu,
    "ThresholdedRelu": lambda x, alpha=1.0: op("Where", op("Greater", x, alpha), x, 0.0),
}
