"""Batch normalisation by the batch's own mean and variance, as a model in training mode computes it.

torch's exporter (2.13) writes ONNX's ``BatchNormalization`` for it, which normalises by the running statistics.
Source: Ioffe & Szegedy, "Batch Normalization", 2015; ``batch_norm`` in ATen's ``Normalization.cpp``.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import cast, op, rank, scalar_like, shape_of
from dy2st.onnx.translations.tensor_reductions import reduced


def onnx_batch_norm_of_the_batch(
    x: ir.Value,
    weight: ir.Value | None,
    bias: ir.Value | None,
    running_mean: ir.Value,
    running_var: ir.Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[ir.Value, ...]:
    """``_native_batch_norm_legit_functional``: the result, the batch's statistics, the new running ones."""
    axes = [0, *range(2, rank(x))]
    channels = [1, -1, *([1] * (rank(x) - 2))]

    def by_channel(value: ir.Value) -> ir.Value:
        made = op("Reshape", value, channels)
        made.shape = ir.Shape([1, shape_of(x)[1], *([1] * (rank(x) - 2))])
        return made

    mean = reduced("ReduceMean", x, axes, keepdim=False) if training else running_mean
    centred = op("Sub", x, by_channel(mean))
    variance = reduced("ReduceMean", op("Mul", centred, centred), axes, keepdim=False) if training else running_var
    inverse = op("Reciprocal", op("Sqrt", op("Add", variance, scalar_like(eps, variance))))
    result = op("Mul", centred, by_channel(inverse))
    if weight is not None:
        result = op("Mul", result, by_channel(weight))
    if bias is not None:
        result = op("Add", result, by_channel(bias))
    if not training:
        return result, mean, inverse, running_mean, running_var
    # The running variance is that of a sample: divided by one less.
    count = cast(op("Div", op("Size", x), op("Size", mean)), variance.dtype)
    of_sample = op("Div", op("Mul", variance, count), op("Sub", count, scalar_like(1.0, variance)))

    def moved(old: ir.Value, new: ir.Value) -> ir.Value:
        kept = op("Mul", old, scalar_like(1 - momentum, old))
        return op("Add", kept, op("Mul", new, scalar_like(momentum, old)))

    return result, mean, inverse, moved(running_mean, mean), moved(running_var, of_sample)


TRANSLATIONS: dict[Any, Any] = {
    torch.ops.aten._native_batch_norm_legit_functional.default: onnx_batch_norm_of_the_batch,
}
