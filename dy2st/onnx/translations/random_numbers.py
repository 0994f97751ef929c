"""Random draws from uniform numbers. Each run draws anew, and other numbers than torch's generator.

onnxruntime 1.31's own ``Bernoulli`` draws with the opposite probability; its ``Multinomial`` puts every draw back.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import DOUBLE, FLOAT, INT64, cast, op, ops, rank, scalar_like, vector


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


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.bernoulli.default: onnx_bernoulli,
    aten.bernoulli.p: onnx_bernoulli_p,
    aten.multinomial.default: onnx_multinomial,
}
