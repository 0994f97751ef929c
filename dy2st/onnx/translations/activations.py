"""Activations and other functions with a scale, whose number may be known only when the graph runs.

A fixed number takes ONNX's own operator, where there is one; a staged one is spelled out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import DOUBLE, FLOAT, cast, is_float, op, rank, scalar_like
from dy2st.onnx.translations import float64
from dy2st.onnx.translations.tensor_reductions import onnx_mean


def _is_fixed(value: Any, number: float) -> bool:
    return not isinstance(value, ir.Value) and value == number


def times(x: ir.Value, factor: Any) -> ir.Value:
    """``x`` times a number; a factor of one leaves no trace."""
    return x if _is_fixed(factor, 1) else op("Mul", x, scalar_like(factor, x))


def onnx_leaky_relu(x: ir.Value, slope: Any = 0.01) -> ir.Value:
    """``leaky_relu``."""
    if not isinstance(slope, ir.Value) and x.dtype != DOUBLE:
        return op("LeakyRelu", x, alpha=float(slope))
    return op("Where", op("Less", x, 0.0), times(x, slope), x)


def onnx_elu(x: ir.Value, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0) -> ir.Value:
    """``elu``, with the two scales that eager's operator has."""
    numbers = (alpha, scale, input_scale)
    if not any(isinstance(v, ir.Value) for v in numbers) and x.dtype != DOUBLE and input_scale == 1:
        return times(op("Elu", x, alpha=float(alpha)), scale)
    below = times(float64.expm1(times(x, input_scale)), alpha)
    return times(op("Where", op("Greater", x, 0.0), x, below), scale)


def onnx_celu(x: ir.Value, alpha: Any = 1.0) -> ir.Value:
    """``celu``."""
    if not isinstance(alpha, ir.Value) and x.dtype == FLOAT:
        return op("Celu", x, alpha=float(alpha))
    below = times(float64.expm1(op("Div", x, scalar_like(alpha, x))), alpha)
    return op("Where", op("Greater", x, 0.0), x, below)


def onnx_softplus(x: ir.Value, beta: Any = 1.0, threshold: Any = 20.0) -> ir.Value:
    """``softplus``: the identity from the threshold on."""
    scaled = times(x, beta)
    if x.dtype == DOUBLE:
        smooth = float64.softplus(scaled)
    else:
        smooth = op("Softplus", scaled)
        smooth.shape = x.shape
    smooth = smooth if _is_fixed(beta, 1) else op("Div", smooth, scalar_like(beta, x))
    return op("Where", op("Greater", scaled, scalar_like(threshold, x)), x, smooth)


def onnx_addcmul(x: ir.Value, first: ir.Value, second: ir.Value, value: Any = 1) -> ir.Value:
    """``addcmul``."""
    return op("Add", x, op("Mul", times(first, value), second))


def onnx_addcdiv(x: ir.Value, first: ir.Value, second: ir.Value, value: Any = 1) -> ir.Value:
    """``addcdiv``."""
    return op("Add", x, op("Div", times(first, value), second))


def onnx_add(x: ir.Value, y: Any, alpha: Any = 1) -> ir.Value:
    """``add`` with a factor; of bools it is ``or``."""
    y = y if isinstance(y, ir.Value) else scalar_like(y, x)
    if x.dtype == y.dtype == ir.DataType.BOOL:
        return op("Identity", x) if _is_fixed(alpha, 0) else op("Or", x, y)
    return op("Add", x, times(y, alpha))


def onnx_sub(x: Any, y: Any, alpha: Any = 1) -> ir.Value:
    """``sub`` with a factor."""
    y = y if isinstance(y, ir.Value) else scalar_like(y, x)
    return op("Sub", x, times(y, alpha))


def _clamp(x: ir.Value, low: Any = None, high: Any = None) -> ir.Value:
    """``clamp``; NaN stays NaN, and where the bounds cross the upper one holds.

    With one bound it is no ``Clip``: onnxruntime 1.31 then makes the greatest finite number of an infinity.
    """
    if low is None and high is None:
        return op("Identity", x)
    if high is None:
        return op("Max", x, scalar_like(low, x))
    if low is None:
        return op("Min", x, scalar_like(high, x))
    return op("Clip", x, scalar_like(low, x), scalar_like(high, x))


def _clamp_tensors(x: ir.Value, low: Any = None, high: Any = None) -> ir.Value:
    """``clamp`` by tensors, which may stretch ``x``."""
    found = x if low is None else op("Max", x, low)
    return op("Identity", x) if low is None and high is None else found if high is None else op("Min", found, high)


def onnx_threshold(x: ir.Value, threshold: Any, value: Any) -> ir.Value:
    """``threshold``."""
    return op("Where", op("LessOrEqual", x, scalar_like(threshold, x)), scalar_like(value, x), x)


def onnx_logit(x: ir.Value, eps: Any = None) -> ir.Value:
    """``logit``; NaN stays NaN."""
    x = x if is_float(x) else cast(x, FLOAT)
    if eps is not None:
        x = _clamp(x, float(eps), 1.0 - float(eps))
    return op("Log", op("Div", x, op("Sub", 1.0, x)))


def onnx_log_sigmoid(x: ir.Value) -> ir.Value:
    """``logsigmoid``: onnxruntime's ``Sigmoid`` is 0 below -18, and its logarithm -inf."""
    other = op("Neg", x)
    smooth = float64.softplus(other) if x.dtype == DOUBLE else op("Softplus", other)
    smooth.shape = x.shape
    return op("Neg", smooth)


def onnx_binary_cross_entropy_with_logits(
    x: ir.Value,
    target: ir.Value,
    weight: ir.Value | None = None,
    pos_weight: ir.Value | None = None,
    reduction: int = 1,
) -> ir.Value:
    """``binary_cross_entropy_with_logits``, in eager's steps; ``reduction`` is 0 for none, 1 for the mean, 2 a sum."""
    logs = onnx_log_sigmoid(x)
    if pos_weight is not None:
        logs = op("Mul", op("Add", op("Mul", op("Sub", pos_weight, 1.0), target), 1.0), logs)
    loss = op("Sub", op("Mul", op("Sub", scalar_like(1.0, target), target), x), logs)
    if weight is not None:
        loss = op("Mul", loss, weight)
    if reduction == 0:
        return loss
    return onnx_mean(loss) if reduction == 1 else op("ReduceSum", loss, keepdims=0)


def _shares(kind: str) -> Callable[..., ir.Value]:
    """``softmax`` or ``log_softmax``, computed in the dtype that is asked for."""

    def translation(x: ir.Value, dim: int, dtype: Any = None) -> ir.Value:
        if isinstance(dtype, int) and dtype > 0:
            x = cast(x, ir.DataType(dtype))
        if not rank(x):
            return op("Squeeze", op(kind, op("Unsqueeze", x, [0]), axis=0), [0])
        return op(kind, x, axis=dim)

    return translation


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.softmax.int: _shares("Softmax"),
    aten.log_softmax.int: _shares("LogSoftmax"),
    aten.leaky_relu.default: onnx_leaky_relu,
    aten.elu.default: onnx_elu,
    aten.celu.default: onnx_celu,
    aten.softplus.default: onnx_softplus,
    aten.addcmul.default: onnx_addcmul,
    aten.addcdiv.default: onnx_addcdiv,
    aten.add.Tensor: onnx_add,
    aten.add.Scalar: onnx_add,
    aten.sub.Tensor: onnx_sub,
    aten.sub.Scalar: onnx_sub,
    aten.clamp.default: _clamp,
    aten.clamp_min.default: _clamp,
    aten.clamp.Tensor: _clamp_tensors,
    aten.clamp_min.Tensor: _clamp_tensors,
    aten.clamp_max.Tensor: lambda x, high: _clamp_tensors(x, None, high),
    aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
    aten.hardtanh.default: lambda x, low=-1.0, high=1.0: _clamp(x, low, high),
    aten.threshold.default: onnx_threshold,
    aten.logit.default: onnx_logit,
    aten.log_sigmoid.default: onnx_log_sigmoid,
    aten.log_sigmoid_forward.default: lambda x: (onnx_log_sigmoid(x), op("Identity", x)),
    aten.binary_cross_entropy_with_logits.default: onnx_binary_cross_entropy_with_logits,
}
