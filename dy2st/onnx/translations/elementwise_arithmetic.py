"""Division, remainders, powers, shifts: arithmetic with eager's results for signs, zeros, infinities and overflow.

Source: ``c10/util/generic_math.h`` and ``BinaryOpsKernel.cpp`` of torch 2.13 for what eager computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, INT64, cast, constant, is_float, loop, op, scalar_like

UINT8, UINT64 = ir.DataType.UINT8, ir.DataType.UINT64


def _both(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands in one dtype; numbers stay numbers."""
    if not isinstance(x, ir.Value) or not isinstance(y, ir.Value) or x.dtype == y.dtype:
        return x, y
    if is_float(x) != is_float(y):
        return (x, scalar_like(y, x)) if is_float(x) else (scalar_like(x, y), y)
    scalars = [v.shape is not None and len(v.shape) == 0 for v in (x, y)]
    if scalars[0] == scalars[1]:
        wide = max(x, y, key=lambda value: value.dtype.itemsize if value.dtype is not None else 0).dtype
        return cast(x, wide), cast(y, wide)
    return (x, scalar_like(y, x)) if scalars[1] else (scalar_like(x, y), y)


def _opposite(rest: ir.Value, y: Any) -> ir.Value:
    """Whether a remainder, if not zero, has another sign than the divisor."""
    if not isinstance(y, ir.Value):
        return op("Greater" if y < 0 else "Less", rest, 0)
    unequal = op("Xor", op("Less", rest, 0), op("Less", y, 0))
    return op("And", unequal, op("Not", op("Equal", rest, 0)))


def _promoted(x: ir.Value, number: Any) -> ir.Value:
    """Integers beside a float are floats, of the default dtype."""
    default = DOUBLE if torch.get_default_dtype() is torch.float64 else FLOAT
    is_beside = is_float(number) if isinstance(number, ir.Value) else isinstance(number, float)
    return cast(x, default) if is_beside and not is_float(x) else x


def _as_value(x: Any, y: Any) -> ir.Value:
    return x if isinstance(x, ir.Value) else scalar_like(x, y)


def onnx_remainder(x: Any, y: Any) -> ir.Value:
    """``remainder``: the sign is the divisor's."""
    x, y = _both(x, y)
    x = _as_value(x, y)
    if not is_float(x):
        return op("Mod", x, y)
    rest = op("Mod", x, y, fmod=1)
    return op("Where", _opposite(rest, y), op("Add", rest, y), rest)


def onnx_floor_divide(x: Any, y: Any) -> ir.Value:
    """``floor_divide``: from the exact remainder, so that ``1.0 // 0.1`` is 9 and not the 10 of a rounded quotient."""
    x, y = _both(x, y)
    x = _promoted(_as_value(x, y), y)
    if not is_float(x):
        return floor_divide_integers(x, y)
    rest = op("Mod", x, y, fmod=1)
    quotient = op("Div", op("Sub", x, rest), y)
    whole = op("Round", op("Sub", quotient, cast(_opposite(rest, y), x.dtype)))
    if not isinstance(y, ir.Value):
        return op("Div", x, y) if y == 0 else whole
    return op("Where", op("Equal", y, 0.0), op("Div", x, y), whole)


def floor_divide_integers(x: ir.Value, y: Any) -> ir.Value:
    """Rounded down: ONNX rounds towards zero."""
    if x.dtype in {UINT8, ir.DataType.UINT16, ir.DataType.UINT32, UINT64}:
        return op("Div", x, y)
    return op("Div", op("Sub", x, op("Mod", x, y)), y)


def onnx_div_mode(x: Any, y: Any, rounding_mode: str | None = None) -> ir.Value:
    """``div`` with a rounding mode."""
    x, y = _both(x, y)
    x = _as_value(x, y)
    if rounding_mode == "floor":
        return onnx_floor_divide(x, y)
    if rounding_mode == "trunc":
        return truncated(op("Div", x, y)) if is_float(x) else op("Div", x, y)
    return op("Div", x, y)


def truncated(x: ir.Value) -> ir.Value:
    """``trunc``: towards zero; an integer is itself."""
    if not is_float(x):
        return op("Identity", x)
    return op("Mul", op("Sign", x), op("Floor", op("Abs", x)))


def integer_power(base: ir.Value, exponent: ir.Value) -> ir.Value:
    """A power of integers, which wraps round as eager's does: by squaring, a ``Loop`` over the exponent's bits."""
    dtype = base.dtype
    base, exponent = cast(base, INT64), cast(exponent, INT64)

    def body(_: ir.Value, state: Sequence[ir.Value]) -> tuple[ir.Value, Sequence[ir.Value], Sequence[ir.Value]]:
        result, square, left = state
        odd = op("Equal", op("Mod", left, 2), 1)
        result = op("Mul", result, op("Where", odd, square, 1))
        left = op("Div", left, 2)
        return any_element(left), [result, op("Mul", square, square), left], []

    count = op("Max", exponent, 0)
    result = loop(None, [constant(1), base, count], body)[0]
    flipped = op("Where", op("Equal", op("Mod", exponent, 2), 1), base, 1)
    inverse = op("Where", op("Equal", op("Abs", base), 1), flipped, 0)
    return cast(op("Where", op("Less", exponent, 0), inverse, result), dtype)


def onnx_pow_tensor(x: ir.Value, y: ir.Value) -> ir.Value:
    """``pow`` of two tensors."""
    x, y = _both(x, y)
    return op("Pow", x, y) if is_float(x) else integer_power(x, y)


_ROOTS: dict[float, Callable[[ir.Value], ir.Value]] = {
    0.5: lambda x: op("Sqrt", x),
    -0.5: lambda x: op("Reciprocal", op("Sqrt", x)),
    -1.0: lambda x: op("Reciprocal", x),
    -2.0: lambda x: op("Reciprocal", op("Mul", x, x)),
}
# As eager does; onnxruntime has a rounding of its own for one number, and multiplies where there are more.
_OF_ONE_NUMBER: dict[float, Callable[[ir.Value], ir.Value]] = {
    2.0: lambda x: op("Mul", x, x),
    3.0: lambda x: op("Mul", op("Mul", x, x), x),
}


def onnx_pow_scalar(x: ir.Value, y: Any) -> ir.Value:
    """``pow`` with a number as the exponent."""
    x = _promoted(x, y)
    if isinstance(y, ir.Value):
        return op("Pow", x, scalar_like(y, x)) if is_float(x) else integer_power(x, y)
    if is_float(x):
        special = _ROOTS.get(float(y))
        if special is None and x.shape is not None and len(x.shape) == 0 and x.dtype in (FLOAT, DOUBLE):
            special = _OF_ONE_NUMBER.get(float(y))
        return special(x) if special is not None else op("Pow", x, float(y))
    result, square, left = None, x, int(y)
    while left > 0:
        if left & 1:
            result = square if result is None else op("Mul", result, square)
        left >>= 1
        square = op("Mul", square, square) if left else square
    return op("Add", op("Mul", x, 0), 1) if result is None else op("Identity", result)


def onnx_scalar_pow(x: Any, y: ir.Value) -> ir.Value:
    """``pow`` of a number."""
    y = _promoted(y, x)
    base = _as_value(x, y)
    return op("Pow", base, y) if is_float(y) else integer_power(base, y)


def _shifted(x: ir.Value, count: Any, direction: str) -> ir.Value:
    """Shift a value that is not negative, or whose bits beyond the dtype may be lost."""
    bits = cast(cast(x, INT64), UINT64)
    amount = cast(cast(count, INT64), UINT64) if isinstance(count, ir.Value) else constant(int(count), UINT64)
    return cast(cast(op("BitShift", bits, amount, direction=direction), INT64), x.dtype)


def onnx_left_shift(x: Any, y: Any) -> ir.Value:
    """``bitwise_left_shift``."""
    x = _as_value(x, y)
    return _shifted(x, y, "LEFT")


def onnx_right_shift(x: Any, y: Any) -> ir.Value:
    """``bitwise_right_shift``, which keeps the sign."""
    x = _as_value(x, y)
    if x.dtype == UINT8:
        return _shifted(x, y, "RIGHT")
    below = op("Less", x, 0)
    shifted = _shifted(op("Where", below, op("BitwiseNot", x), x), y, "RIGHT")
    return op("Where", below, op("BitwiseNot", shifted), shifted)


def onnx_gcd(x: ir.Value, y: ir.Value) -> ir.Value:
    """``gcd`` by Euclid's algorithm, a ``Loop`` until the last element is done."""

    def body(_: ir.Value, state: Sequence[ir.Value]) -> tuple[ir.Value, Sequence[ir.Value], Sequence[ir.Value]]:
        large, small = state
        done = op("Equal", small, 0)
        rest = op("Where", done, 0, op("Mod", large, op("Where", done, 1, small)))
        return any_element(rest), [op("Where", done, large, small), rest], []

    return loop(None, [op("Abs", x), op("Abs", y)], body)[0]


def any_element(x: ir.Value) -> ir.Value:
    """Whether an element is not zero; of nothing, False."""
    return op("Greater", op("ReduceSum", cast(cast(x, BOOL), INT64), keepdims=0), 0)


def onnx_lcm(x: ir.Value, y: ir.Value) -> ir.Value:
    """``lcm``; with zero it is zero."""
    common = onnx_gcd(x, y)
    divisor = op("Where", op("Equal", common, 0), 1, common)
    return op("Abs", op("Mul", op("Div", x, divisor), y))


def onnx_lerp(x: ir.Value, y: ir.Value, weight: Any) -> ir.Value:
    """``lerp``, from the nearer end, so that a weight of one gives the end itself."""
    share = scalar_like(weight, x) if isinstance(weight, ir.Value) else weight
    step = op("Sub", y, x)
    from_x = op("Add", x, op("Mul", step, share))
    if not isinstance(share, ir.Value):
        return from_x if abs(share) < 0.5 else op("Sub", y, op("Mul", step, 1 - share))
    from_y = op("Sub", y, op("Mul", step, op("Sub", 1.0, share)))
    return op("Where", op("Less", op("Abs", share), 0.5), from_x, from_y)


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.remainder.Tensor: onnx_remainder,
    aten.remainder.Scalar: onnx_remainder,
    aten.remainder.Scalar_Tensor: onnx_remainder,
    aten.floor_divide.default: onnx_floor_divide,
    aten.floor_divide.Scalar: onnx_floor_divide,
    aten.div.Tensor_mode: onnx_div_mode,
    aten.div.Scalar_mode: onnx_div_mode,
    aten.pow.Tensor_Tensor: onnx_pow_tensor,
    aten.pow.Tensor_Scalar: onnx_pow_scalar,
    aten.pow.Scalar: onnx_scalar_pow,
    aten.bitwise_left_shift.Tensor: onnx_left_shift,
    aten.bitwise_left_shift.Tensor_Scalar: onnx_left_shift,
    aten.bitwise_left_shift.Scalar_Tensor: onnx_left_shift,
    aten.bitwise_right_shift.Tensor: onnx_right_shift,
    aten.bitwise_right_shift.Tensor_Scalar: onnx_right_shift,
    aten.bitwise_right_shift.Scalar_Tensor: onnx_right_shift,
    aten.__lshift__.Tensor: onnx_left_shift,
    aten.__lshift__.Scalar: onnx_left_shift,
    aten.__rshift__.Tensor: onnx_right_shift,
    aten.__rshift__.Scalar: onnx_right_shift,
    aten.gcd.default: onnx_gcd,
    aten.lcm.default: onnx_lcm,
    aten.lerp.Scalar: onnx_lerp,
    aten.lerp.Tensor: onnx_lerp,
}
