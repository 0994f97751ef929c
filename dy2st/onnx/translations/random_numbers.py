"""Random draws from uniform numbers. Each run draws anew, and other numbers than torch's generator.

onnxruntime 1.31's own ``Bernoulli`` draws with the opposite probability; its ``Multinomial`` puts every draw back.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from dy2st.errors import UntranslatedError
from dy2st.onnx.building import DOUBLE, FLOAT, INT64, cast, constant, op, ops, rank, scalar_like, vector
from dy2st.onnx.translations.factories import dtype_or, sizes


def _uniform_like(x: ir.Value) -> ir.Value:
    """Numbers from 0 up to 1 in the shape of ``x``, float32 or float64."""
    dtype = DOUBLE if x.dtype == DOUBLE else FLOAT
    made = ops("RandomUniformLike", x, dtypes=(dtype,), dtype=int(dtype))[0]
    made.shape = x.shape
    return made


def onnx_bernoulli(x: ir.Value, *_: Any, **__: Any) -> ir.Value:
    """``bernoulli``: 1 with the probability that each element says."""
    draws = _uniform_like(x)
    return cast(op("Less", draws, cast(x, draws.dtype)), x.dtype)


def onnx_bernoulli_p(x: ir.Value, p: Any = 0.5, *_: Any, **__: Any) -> ir.Value:
    """``bernoulli`` with one probability for all elements."""
    draws = _uniform_like(x)
    return cast(op("Less", draws, scalar_like(p, draws)), x.dtype)


def onnx_multinomial(x: ir.Value, count: Any, replacement: bool = False, *_: Any, **__: Any) -> ir.Value:
    """``multinomial``: places drawn by their weights, without putting them back unless asked to.

    Without replacement it takes the largest weights divided by exponential numbers, as eager does.
    """
    if not replacement or count == 1:
        waits = op("Neg", op("Log", _uniform_like(x)))
        return ops("TopK", op("Div", x, cast(waits, x.dtype)), vector(count), axis=-1, dtypes=(None, INT64))[1]
    rows = x if rank(x) > 1 else op("Unsqueeze", x, [0])
    chances = op("Log", cast(rows, FLOAT))
    drawn = ops("Multinomial", chances, dtypes=(INT64,), sample_size=int(count), dtype=int(INT64))[0]
    return drawn if rank(x) > 1 else op("Squeeze", drawn, [0])


def onnx_uniform(
    shape: Any, *, low: Any, high: Any, dtype: Any, device: Any = None, stride: Any = None, generator: Any = None
) -> ir.Value:
    """``uniform_``: from ``low`` up to ``high``."""
    made = dtype_or(dtype, FLOAT)
    wide = DOUBLE if made == DOUBLE else FLOAT
    draws = _uniform_like(op("Expand", constant(0.0, wide), sizes(shape)))
    span = op("Sub", scalar_like(high, draws), scalar_like(low, draws))
    return cast(op("Add", op("Mul", draws, span), scalar_like(low, draws)), made)


def onnx_randperm(n: Any, dtype: Any = None, *_: Any, **__: Any) -> ir.Value:
    """``randperm``: the order of as many uniform numbers, which are doubles: hardly any two are alike."""
    count = vector(n)
    draws = _uniform_like(op("Expand", constant(0.0, DOUBLE), count))
    places = ops("TopK", draws, count, axis=0, dtypes=(None, INT64))[1]
    return cast(places, dtype_or(dtype, INT64))


# How many integers ``random_`` draws from where it is given no bound; int64 has more than a double can say.
_KINDS = ir.DataType
_MOST = {FLOAT: 2**24, DOUBLE: 2**53, _KINDS.FLOAT16: 2**11, _KINDS.BFLOAT16: 2**8}
_MOST |= {_KINDS.INT32: 2**31, _KINDS.INT16: 2**15, _KINDS.INT8: 2**7, _KINDS.UINT8: 2**8, _KINDS.BOOL: 2}


def onnx_random(x: ir.Value, *bounds: Any, **_: Any) -> ir.Value:
    """``random_``: integers from the first bound, or 0, up to the second, or all that the dtype has."""
    low, high = (0, *bounds)[-2:] if bounds else (0, None)
    if high is None:
        high = _MOST.get(x.dtype or FLOAT)
    if high is None or high - low > _MOST[DOUBLE]:
        raise UntranslatedError(
            "there is no ONNX translation of random_ of more integers than a double can tell apart",
            hint="give it a bound",
        )
    draws = _uniform_like(cast(x, DOUBLE))
    return cast(op("Floor", op("Add", op("Mul", draws, float(high - low)), float(low))), x.dtype)


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.bernoulli.default: onnx_bernoulli,
    aten.bernoulli.p: onnx_bernoulli_p,
    aten.multinomial.default: onnx_multinomial,
    torch.ops.prims.uniform.default: onnx_uniform,
    aten.randperm.default: onnx_randperm,
    aten.random.default: onnx_random,
    aten.random.to: onnx_random,
    getattr(aten.random, "from"): onnx_random,
}
