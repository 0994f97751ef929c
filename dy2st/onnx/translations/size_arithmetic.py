"""Arithmetic of sizes: what Python computes with ints, and in double precision with floats.

torch's exporter takes a float made of sizes to be a float32, and the quotient of ints to be rounded towards zero; so
``int(n * 0.29)`` would be 29 for 100, and ``-(-n // 2)`` the wrong half. A float's value here is a float32 for what
takes one beside a tensor, and keeps the double that it is rounded from for all else.

Source: Python reference 6.7 (floor division and modulo of ints and floats).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import BOOL, DOUBLE, INT64, cast, constant, is_float, op
from dy2st.onnx.translations.doubles import double_of, with_double
from dy2st.onnx.translations.elementwise_arithmetic import onnx_floor_divide, onnx_remainder

Number = ir.Value | float | int | bool


def _is_float(x: Any) -> bool:
    return is_float(x) if isinstance(x, ir.Value) else isinstance(x, float)


def _int(x: Any) -> ir.Value:
    return cast(x, INT64) if isinstance(x, ir.Value) else constant(int(x), INT64)


def _pair(a: Number, b: Number) -> tuple[ir.Value, ir.Value]:
    """Two operands as doubles if one is a float, else as ints."""
    kind = double_of if _is_float(a) or _is_float(b) else _int
    return kind(a), kind(b)


def _result(value: ir.Value) -> ir.Value:
    return with_double(value) if value.dtype == DOUBLE else value


def _arithmetic(compute: Callable[[ir.Value, ir.Value], ir.Value]) -> Callable[[Number, Number], ir.Value]:
    return lambda a, b: _result(compute(*_pair(a, b)))


def _comparison(kind: str) -> Callable[[Number, Number], ir.Value]:
    def compare(a: Number, b: Number) -> ir.Value:
        if all(x.dtype == BOOL if isinstance(x, ir.Value) else isinstance(x, bool) for x in (a, b)):
            a, b = (x if isinstance(x, ir.Value) else constant(x, BOOL) for x in (a, b))
            return op(kind, a, b)
        return op(kind, *_pair(a, b))

    return compare


def onnx_at_most(a: Number, b: Number) -> ir.Value:
    """``a <= b``; torch notes bounds of sizes that are greater than any int64."""
    if isinstance(b, int) and b >= 2**63 - 1:
        return constant(True, BOOL)
    return _comparison("LessOrEqual")(a, b)


def onnx_quotient(a: Number, b: Number) -> ir.Value:
    """``a / b``, a float for ints too."""
    return with_double(op("Div", double_of(a), double_of(b)))


def _rounding(kind: str) -> Callable[[ir.Value], ir.Value]:
    return lambda x: cast(op(kind, double_of(x)), INT64) if is_float(x) else op("Identity", x)


def onnx_truncated(x: ir.Value) -> ir.Value:
    """``math.trunc(x)``: towards zero."""
    return cast(double_of(x), INT64) if is_float(x) else op("Identity", x)


def _unary(kind: str) -> Callable[[ir.Value], ir.Value]:
    return lambda x: with_double(op(kind, double_of(x))) if is_float(x) else op(kind, _int(x))


def onnx_chosen(test: ir.Value, a: Number, b: Number) -> ir.Value:
    """``sym_ite``."""
    return _result(op("Where", test, *_pair(a, b)))


TRANSLATIONS: dict[Any, Any] = {
    torch.ops.aten.sym_numel.default: lambda x: op("Size", x),
    operator.add: _arithmetic(lambda a, b: op("Add", a, b)),
    operator.sub: _arithmetic(lambda a, b: op("Sub", a, b)),
    operator.mul: _arithmetic(lambda a, b: op("Mul", a, b)),
    operator.floordiv: _arithmetic(onnx_floor_divide),
    operator.mod: _arithmetic(onnx_remainder),
    operator.pow: _arithmetic(lambda a, b: op("Pow", a, b)),
    operator.truediv: onnx_quotient,
    operator.neg: _unary("Neg"),
    operator.abs: _unary("Abs"),
    operator.eq: _comparison("Equal"),
    operator.ne: lambda a, b: op("Not", _comparison("Equal")(a, b)),
    operator.lt: _comparison("Less"),
    operator.le: onnx_at_most,
    operator.gt: _comparison("Greater"),
    operator.ge: _comparison("GreaterOrEqual"),
    math.floor: _rounding("Floor"),
    math.ceil: _rounding("Ceil"),
    math.trunc: onnx_truncated,
    torch.sym_float: lambda x: with_double(double_of(x)),
    torch.sym_max: _arithmetic(lambda a, b: op("Max", a, b)),
    torch.sym_min: _arithmetic(lambda a, b: op("Min", a, b)),
    torch.sym_ite: onnx_chosen,
}
