"""How intervals go through ONNX's operators: one rule for a kind of node, of floats in and floats out.

What has no rule may be any number, or NaN. Integers are within their dtype: their arithmetic wraps around. An interval
is that of eager's values: where a kernel of onnxruntime is off, such as a sigmoid of 1.0000001, the file has other
numbers in any case.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import DOUBLE
from dy2st.onnx.passes.intervals import (
    SLACK,
    Interval,
    added,
    bounded,
    divided,
    monotone,
    multiplied,
    negated,
    squared,
)

# Takes the intervals of the operands that there are.
Rule = Callable[[ir.Node, "list[Interval]"], Interval | None]

# The least number by which one is divided, if it is known not to be zero: below it, some flush to zero.
_LEAST = 1e-30


def _add(_: ir.Node, given: list[Interval]) -> Interval:
    return added(given[0], given[1])


def _subtract(_: ir.Node, given: list[Interval]) -> Interval:
    return added(given[0], negated(given[1]))


def _multiply(node: ir.Node, given: list[Interval]) -> Interval:
    return squared(given[0]) if node.inputs[0] is node.inputs[1] else multiplied(given[0], given[1])


def _divide(_: ir.Node, given: list[Interval]) -> Interval:
    return divided(given[0], given[1])


def _power(node: ir.Node, given: list[Interval]) -> Interval | None:
    exponent = ir.convenience.get_const_tensor(node.inputs[1]) if node.inputs[1] is not None else None
    number = exponent.numpy().item() if exponent is not None and exponent.size == 1 else None
    if number == 2:
        # A power need not be rounded as a product is.
        found = squared(given[0])
        return Interval(found.low * type(found.low)(1 - SLACK), found.high * type(found.high)(1 + SLACK), found.nan)
    return None


def _greatest(_: ir.Node, given: list[Interval]) -> Interval:
    return Interval(max(p.low for p in given), max(p.high for p in given), any(p.nan for p in given))


def _least(_: ir.Node, given: list[Interval]) -> Interval:
    return Interval(min(p.low for p in given), min(p.high for p in given), any(p.nan for p in given))


def _clip(node: ir.Node, given: list[Interval]) -> Interval:
    found, *limits = given
    present = [value is not None for value in node.inputs[1:]]
    if present[:1] == [True]:
        found = _greatest(node, [found, limits.pop(0)])
    return _least(node, [found, limits[0]]) if present[1:] == [True] else found


def _relu(_: ir.Node, given: list[Interval]) -> Interval:
    return monotone(lambda x: max(x, type(x)(0)), given[0], exact=True)


def _absolute(_: ir.Node, given: list[Interval]) -> Interval:
    (x,) = given
    least = type(x.low)(0) if 0 in x else min(abs(x.low), abs(x.high))
    return Interval(least, x.size, x.nan)


def _negate(_: ir.Node, given: list[Interval]) -> Interval:
    return negated(given[0])


def _within(low: float, high: float, *, of_finite: bool = False) -> Rule:
    """Between two numbers; an infinite operand may give NaN."""

    def rule(node: ir.Node, given: list[Interval]) -> Interval:
        del node
        return bounded(low - SLACK, high + SLACK, given[0], nan=of_finite and given[0].is_infinite)

    return rule


def _round(function: Callable[[float], float]) -> Rule:
    return lambda _, given: monotone(function, given[0], exact=True)


def _exponential(_: ir.Node, given: list[Interval]) -> Interval:
    found = monotone(np.exp, given[0])
    return Interval(found.low if found.low > _LEAST else type(found.low)(0), found.high, found.nan)


def _logarithm(_: ir.Node, given: list[Interval]) -> Interval:
    (x,) = given
    zero = type(x.low)(0)
    found = monotone(np.log, Interval(max(x.low, zero), max(x.high, zero), x.nan or bool(x.low < 0)))
    return Interval(found.low - SLACK, found.high + SLACK, found.nan)


def _root(_: ir.Node, given: list[Interval]) -> Interval:
    (x,) = given
    zero = type(x.low)(0)
    return monotone(np.sqrt, Interval(max(x.low, zero), max(x.high, zero), x.nan or bool(x.low < 0)))


def _reciprocal(_: ir.Node, given: list[Interval]) -> Interval:
    one = type(given[0].low)(1)
    return divided(Interval(one, one, nan=False), given[0])


def _softplus(_: ir.Node, given: list[Interval]) -> Interval:
    (x,) = given
    zero = type(x.low)(0)
    return Interval(zero, max(x.high, zero) * (1 + type(zero)(SLACK)) + 1, x.nan)


def _softmax(_: ir.Node, given: list[Interval]) -> Interval:
    """A row of infinities has none, and a row of nothing is nothing."""
    (x,) = given
    return bounded(0, 1 + SLACK, x, nan=x.is_infinite)


def _log_softmax(node: ir.Node, given: list[Interval]) -> Interval:
    (x,) = given
    # onnxruntime 1.31 takes the logarithm of a softmax of doubles. The logarithm of a number of elements is below 50.
    low = -math.inf if node.outputs[0].dtype == DOUBLE else (x.low - x.high) * type(x.low)(1 + SLACK) - 50
    return bounded(low, SLACK, x, nan=x.is_infinite)


ELEMENTWISE: dict[str, Rule] = {
    "Abs": _absolute,
    "Add": _add,
    "Ceil": _round(np.ceil),
    "Clip": _clip,
    "Cos": _within(-1, 1, of_finite=True),
    "Div": _divide,
    "Erf": _within(-1, 1),
    "Exp": _exponential,
    "Floor": _round(np.floor),
    "Log": _logarithm,
    "LogSoftmax": _log_softmax,
    "Max": _greatest,
    "Min": _least,
    "Mul": _multiply,
    "Neg": _negate,
    "Pow": _power,
    "Reciprocal": _reciprocal,
    "Relu": _relu,
    "Round": _round(np.round),
    "Sigmoid": lambda _, given: bounded(0, 1, given[0]),
    "Sign": _within(-1, 1),
    "Sin": _within(-1, 1, of_finite=True),
    "Softmax": _softmax,
    "Softplus": _softplus,
    "Sqrt": _root,
    "Sub": _subtract,
    "Tanh": _within(-1, 1),
}
