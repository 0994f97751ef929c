"""What is counted or gathered by index: ``bincount``, ``histc`` and ``scatter_reduce``.

Source: ``bincount_cpu`` of ATen/native/SummaryOps.cpp, ``histogram_histc`` of ATen/native/Histogram.cpp, and
``scatter_reduce_two`` of ATen/native/TensorAdvancedIndexing.cpp.
"""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import DOUBLE, FLOAT, INT64, cast, constant, is_float, op, rank, scalar_like, vector
from dy2st.onnx.translations.elementwise_arithmetic import floor_divide_integers
from dy2st.onnx.translations.guard_nodes import onnx_require, onnx_tied
from dy2st.onnx.translations.index_nodes import as_many
from dy2st.onnx.translations.lookups import from_zero
from dy2st.onnx.translations.scans import limits
from dy2st.onnx.translations.tensor_reductions import any_nan


def _filled(shape: ir.Value, value: float, dtype: Any) -> ir.Value:
    return op("ConstantOfShape", shape, value=ir.tensor([value], dtype=dtype), dtype=dtype)


def onnx_bincount(x: ir.Value, weights: ir.Value | None = None, minlength: Any = 0) -> ir.Value:
    """``bincount``: how often each number occurs, or the sum of its weights; fails for a negative number."""
    number = cast(x, INT64)
    # With -1 among them there is a greatest one of no numbers too.
    greatest = op("ReduceMax", op("Concat", number, [-1], axis=0), [0], keepdims=1)
    bins = op("Max", op("Add", greatest, 1), vector(minlength))
    negative = op("ReduceSum", cast(op("Less", number, 0), INT64), [0], keepdims=0)
    ok = onnx_require(op("Equal", negative, 0), "torch.bincount: eager raises for a negative number")
    if weights is not None:
        # Of no numbers eager gives integers all the same.
        some = op("Greater", op("Size", number), 0)
        ok = op("Add", ok, onnx_require(some, "torch.bincount: exported for weights of one number at least"))
    if weights is None:
        dtype, given = INT64, _filled(op("Shape", number), 1, INT64)
    else:
        dtype = weights.dtype if weights.dtype == FLOAT else DOUBLE
        given = cast(weights, dtype)
    zeros = onnx_tied(_filled(bins, 0 if dtype == INT64 else 0.0, dtype), ok)
    return op("ScatterElements", zeros, number, given, axis=0, reduction="add")


def onnx_histc(x: ir.Value, bins: int = 100, min: float = 0, max: float = 0) -> ir.Value:
    """``histc``: how many elements are in each of some bins of equal width; without bounds, of the data's."""
    flat = op("Reshape", x, [-1])
    dtype = x.dtype
    if min == max:
        # Of no elements, zero is the least and the greatest.
        none = cast(op("Equal", op("Size", x), 0), INT64)
        zero = op("ConstantOfShape", op("Reshape", none, [1]), value=ir.tensor([0.0], dtype=dtype), dtype=dtype)
        some = op("Concat", flat, zero, axis=0)
        some.shape = ir.Shape([None])
        low, high = (op(kind, some, [0], keepdims=0) for kind in ("ReduceMin", "ReduceMax"))
        finite = op("And", *(op("Less", op("Abs", end), math.inf) for end in (low, high)))
        finite = op("And", finite, op("Not", any_nan(some, [0], False)))
        flat = onnx_tied(flat, onnx_require(finite, "torch.histc: eager raises for data without a finite range"))
        same = op("Equal", low, high)
        low, high = op("Where", same, op("Sub", low, 1.0), low), op("Where", same, op("Add", high, 1.0), high)
    else:
        low, high = scalar_like(min, x), scalar_like(max, x)
    inside = op("And", op("GreaterOrEqual", flat, low), op("LessOrEqual", flat, high))
    kept = op("Compress", flat, inside, axis=0)
    place = op("Div", op("Mul", op("Sub", kept, low), float(bins)), op("Sub", high, low))
    place = op("Min", cast(place, INT64), bins - 1)
    ones = _filled(op("Shape", place), 1, INT64)
    counts = op("ScatterElements", _filled(constant([bins]), 0, INT64), place, ones, axis=0, reduction="add")
    return cast(counts, dtype)


# The ONNX reduction of each of torch's.
_REDUCTIONS = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


def onnx_scatter_reduce(
    x: ir.Value, dim: int, index: ir.Value, source: ir.Value, reduce: str, include_self: bool = True
) -> ir.Value:
    """``scatter_reduce``: a sum, mean, product or extreme for each index."""
    if not rank(x):
        flat, places, given = (op("Reshape", value, [1]) for value in (x, index, source))
        for value in (flat, places, given):
            value.shape = ir.Shape([1])
        return op("Reshape", onnx_scatter_reduce(flat, 0, places, given, reduce, include_self), [])
    axis = dim % rank(x)
    source = as_many(source, index)
    shape = op("Shape", index)
    index = from_zero(index)

    def scattered(to: ir.Value, given: ir.Value, reduction: str) -> ir.Value:
        return op("ScatterElements", to, index, given, axis=axis, reduction=reduction)

    if not include_self:
        low, high = limits(x.dtype)
        start = {"sum": 0, "mean": 0, "prod": 1, "amax": low, "amin": high}[reduce]
        neutral = _filled(shape, float(start) if is_float(x) else int(start), x.dtype)
        x = scattered(x, neutral, "none")
    found = scattered(x, source, _REDUCTIONS[reduce])
    if reduce == "mean":
        before = _filled(op("Shape", x), int(include_self), INT64)
        count = cast(op("Max", scattered(before, _filled(shape, 1, INT64), "add"), 1), x.dtype)
        return op("Div", found, count) if is_float(x) else floor_divide_integers(found, count)
    if reduce in ("amax", "amin") and is_float(x):
        # onnxruntime 1.31 passes over NaN.
        nans = scattered(cast(op("IsNaN", x), INT64), cast(op("IsNaN", source), INT64), "add")
        return op("Where", op("Greater", nans, 0), math.nan, found)
    return found


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.bincount.default: onnx_bincount,
    aten.histc.default: onnx_histc,
    aten.scatter_reduce.two: onnx_scatter_reduce,
}
