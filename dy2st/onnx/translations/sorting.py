"""Sorting and what rests on it: ``sort``, ``topk``, ``kthvalue``, ``median``, ``mode``, ``unique``, ``searchsorted``.

NaN is the greatest value of all, as it is for eager; equal elements keep their order. ONNX's ``TopK`` knows neither a
place for NaN nor whole dimensions: it is given keys that do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from dy2st.onnx.building import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    cast,
    constant,
    is_float,
    length,
    loop,
    op,
    ops,
    rank,
    size,
    vector,
)
from dy2st.onnx.translations.scans import limits
from dy2st.onnx.translations.tensor_reductions import any_nan, flat

UINT8 = ir.DataType.UINT8


def sort_key(x: ir.Value) -> ir.Value:
    """Numbers in the order of ``x`` that hold no NaN: it becomes infinity, and infinity a large number."""
    if x.dtype == BOOL:
        return cast(x, UINT8)
    if not is_float(x):
        return x
    # A float32 has room above its infinity in float64. The greatest float64 counts as its infinity.
    wide = cast(x, DOUBLE)
    return op("Where", op("IsNaN", wide), math.inf, op("Min", wide, float(np.finfo(np.float64).max)))


def top(x: ir.Value, count: ir.Value, dim: int, *, largest: bool) -> tuple[ir.Value, ir.Value]:
    """The first ``count`` (one int64 element) values and places in sorted order, along a dimension from the front."""
    _, places = ops("TopK", sort_key(x), count, axis=dim, largest=int(largest), sorted=1, dtypes=(None, INT64))
    if is_float(x) or x.dtype == BOOL:
        return op("GatherElements", x, places, axis=dim), places
    return _, places


def onnx_sort(x: ir.Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """``sort``: the values and where they were."""
    if not rank(x):
        return op("Identity", x), op("Identity", constant(0))
    dim %= rank(x)
    return top(x, length(x, dim), dim, largest=descending)


def onnx_topk(x: ir.Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """``topk``."""
    if not rank(x):
        return op("Identity", x), op("Identity", constant(0))
    return top(x, vector(k), dim % rank(x), largest=largest)


def _element(x: ir.Value, index: Any, dim: int, keepdim: bool) -> ir.Value:
    """One slice of a dimension; ``index`` is one int64 element."""
    found = op("Gather", x, index, axis=dim)
    return found if keepdim else op("Squeeze", found, [dim])


def onnx_kthvalue(x: ir.Value, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """``kthvalue``: the k-th smallest and where it is."""
    if not rank(x):
        return op("Identity", x), op("Identity", constant(0))
    dim %= rank(x)
    count = vector(k)
    values, places = top(x, count, dim, largest=False)
    last = op("Sub", count, 1)
    return _element(values, last, dim, keepdim), _element(places, last, dim, keepdim)


def _sorted_and_sentinel(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """All elements sorted, with what the median of nothing is behind them, and their number."""
    elements = flat(x)
    count = op("Shape", elements)
    values, _ = top(elements, count, 0, largest=False)
    nothing = math.nan if is_float(x) else limits(x.dtype)[0]
    values = op("Concat", values, constant([nothing], x.dtype), axis=0)
    values.shape = elements.shape
    return values, count


def onnx_median(x: ir.Value) -> ir.Value:
    """``median`` of all: the lower of two in the middle; NaN if an element is, or if there is none."""
    values, count = _sorted_and_sentinel(x)
    last = op("Max", op("Sub", count, 1), 0)
    middle = _element(values, op("Div", last, 2), 0, keepdim=False)
    if not is_float(x):
        return middle
    return op("Where", op("IsNaN", _element(values, last, 0, keepdim=False)), math.nan, middle)


def onnx_median_dim(x: ir.Value, dim: int = -1, keepdim: bool = False) -> Any:
    """``median`` along a dimension, and where it is."""
    if not rank(x):
        return op("Identity", x), op("Identity", constant(0))
    dim %= rank(x)
    middle = op("Div", op("Sub", length(x, dim), 1), 2)
    values, places = top(x, op("Add", middle, 1), dim, largest=False)
    value, where = _element(values, middle, dim, keepdim), _element(places, middle, dim, keepdim)
    if not is_float(x):
        return value, where
    broken = any_nan(x, [dim], keepdim)
    first = op("ArgMax", cast(op("IsNaN", x), UINT8), axis=dim, keepdims=int(keepdim))
    return op("Where", broken, math.nan, value), op("Where", broken, first, where)


def _elements(values: ir.Value, places: ir.Value, index: ir.Value, dim: int, keepdim: bool) -> list[ir.Value]:
    """Of both one element for each place along the other dimensions, at ``index``, where ``dim`` has size 1."""
    found = [op("GatherElements", each, index, axis=dim) for each in (values, places)]
    return found if keepdim else [op("Squeeze", each, [dim]) for each in found]


def _number_count(x: ir.Value, dim: int) -> ir.Value:
    """How many elements along a dimension are not NaN; the dimension stays, with size 1."""
    return op("ReduceSum", cast(op("Not", op("IsNaN", x)), INT64), [dim], keepdims=1)


def onnx_nanmedian_dim(x: ir.Value, dim: int = -1, keepdim: bool = False) -> Any:
    """``nanmedian`` along a dimension, and where it is."""
    if not is_float(x):
        return onnx_median_dim(x, dim, keepdim)
    if not rank(x):
        return op("Identity", x), op("Identity", constant(0))
    dim %= rank(x)
    values, places = top(x, length(x, dim), dim, largest=False)
    middle = op("Max", op("Div", op("Sub", _number_count(x, dim), 1), 2), 0)
    return _elements(values, places, middle, dim, keepdim)


def onnx_nanmedian(x: ir.Value) -> ir.Value:
    """``nanmedian`` of all."""
    if not is_float(x):
        return onnx_median(x)
    values, _ = _sorted_and_sentinel(x)
    middle = op("Max", op("Div", op("Sub", _number_count(values, 0), 1), 2), 0)
    return _element(values, middle, 0, keepdim=False)


def onnx_mode(x: ir.Value, dim: int = -1, keepdim: bool = False) -> Any:
    """``mode``: the most frequent value, the smallest of several, and the last place in sorted order that holds it."""
    if not rank(x):
        return op("Identity", x), op("Identity", constant(0))
    dim %= rank(x)
    values, places = top(x, length(x, dim), dim, largest=False)
    number = cast(values, UINT8) if x.dtype == BOOL else values
    same = op("Equal", op("Unsqueeze", number, [dim]), op("Unsqueeze", number, [dim + 1]))
    counts = op("ReduceSum", cast(same, INT64), [dim + 1], keepdims=0)
    first = op("ArgMax", counts, axis=dim, keepdims=1)
    last = op("Add", first, op("Sub", op("GatherElements", counts, first, axis=dim), 1))
    last = op("Max", last, 0)
    return _elements(values, places, last, dim, keepdim)


def _begins(x: ir.Value, dim: int) -> ir.Value:
    """Where a run of equal slices along a dimension begins [count]; NaN equals nothing."""
    number = cast(x, UINT8) if x.dtype == BOOL else x
    after, before = op("Slice", number, [1], [2**62], [dim]), op("Slice", number, [0], [-1], [dim])
    different = op("Not", op("Equal", after, before))
    others = [each for each in range(rank(x)) if each != dim]
    if others:
        different = cast(op("ReduceMax", cast(different, INT64), others, keepdims=0), BOOL)
    count = length(x, dim)
    first = op("Slice", op("Equal", count, count), [0], op("Min", count, 1), [0])
    return op("Concat", first, different, axis=0)


def _runs(x: ir.Value, dim: int = 0) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The first of each run of slices along a dimension, the run of each slice, and the lengths of the runs."""
    begins = _begins(x, dim)
    firsts = op("Compress", x, begins, axis=dim)
    run = op("Sub", op("CumSum", cast(begins, INT64), 0, dtype=INT64), 1)
    starts = op("Squeeze", op("NonZero", begins), [0])
    end = op("Slice", length(x, dim), [0], op("Min", op("Shape", starts), 1), [0])
    ends = op("Concat", op("Slice", starts, [1], [2**62], [0]), end, axis=0)
    return firsts, run, op("Sub", ends, starts)


def _unique(x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The sorted values of a tensor, where each element is among them, and how often each occurs."""
    elements = flat(x)
    values, places = top(elements, op("Shape", elements), 0, largest=False)
    values.shape = elements.shape
    firsts, run, counts = _runs(values)
    inverse = op("ScatterElements", run, places, run, axis=0)
    return firsts, op("Reshape", inverse, op("Shape", x), allowzero=1), counts


def onnx_unique2(x: ir.Value, sorted: bool = True, inverse: bool = False, counts: bool = False) -> Any:
    """``unique``: sorted, with the inverse and the counts; each NaN is a value of its own."""
    if is_float(x) or x.dtype == BOOL:
        return _unique(x)
    values, _, where, times = ops("Unique", x, sorted=1, dtypes=(None, INT64, INT64, INT64))
    return values, op("Reshape", where, op("Shape", x), allowzero=1), times


def onnx_unique_consecutive(x: ir.Value, inverse: bool = False, counts: bool = False, dim: int | None = None) -> Any:
    """``unique_consecutive`` of all elements, or of the slices along a dimension."""
    if dim is not None and rank(x):
        return _runs(x, dim % rank(x))
    firsts, run, times = _runs(flat(x))
    return firsts, op("Reshape", run, op("Shape", x), allowzero=1), times


def search(sorted_values: ir.Value, values: Any, *, right: bool, int32: bool, sorter: ir.Value | None) -> ir.Value:
    """Where values belong in sorted rows: a binary search, as eager's, in a ``Loop``."""
    values = values if isinstance(values, ir.Value) else constant(values, sorted_values.dtype or FLOAT)
    if values.dtype != sorted_values.dtype:
        wide = DOUBLE if is_float(values) or is_float(sorted_values) else INT64
        values, sorted_values = cast(values, wide), cast(sorted_values, wide)
    if sorter is not None:
        sorted_values = op("GatherElements", sorted_values, sorter, axis=-1)
    rows = rank(sorted_values) > 1
    count = op("Reshape", length(sorted_values, rank(sorted_values) - 1), [])
    shape = op("Shape", values)
    low = op("Expand", constant(0), shape)
    high = op("Expand", count, shape)
    last = op("Sub", count, 1)
    known = size(sorted_values, -1)
    if known is not None:
        trips = constant(known.bit_length())
    else:
        bits = op("Div", op("Log", op("Add", cast(count, DOUBLE), 1.0)), math.log(2.0))
        trips = cast(op("Add", op("Ceil", bits), op("Min", cast(count, DOUBLE), 1.0)), INT64)

    def body(_: ir.Value, state: Sequence[ir.Value]) -> tuple[None, Sequence[ir.Value], Sequence[ir.Value]]:
        low, high = state
        middle = op("Div", op("Add", low, high), 2)
        place = op("Min", middle, last)
        met = op("GatherElements" if rows else "Gather", sorted_values, place, axis=-1 if rows else 0)
        behind = op("Not", op("Greater" if right else "GreaterOrEqual", met, values))
        behind = op("And", behind, op("Less", low, high))
        return None, [op("Where", behind, op("Add", middle, 1), low), op("Where", behind, high, middle)], []

    found = loop(trips, [low, high], body)[0]
    return cast(found, INT32) if int32 else found


def onnx_searchsorted(
    sorted_values: ir.Value,
    values: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: ir.Value | None = None,
) -> ir.Value:
    """``searchsorted``."""
    return search(sorted_values, values, right=right or side == "right", int32=out_int32, sorter=sorter)


def onnx_bucketize(values: Any, boundaries: ir.Value, out_int32: bool = False, right: bool = False) -> ir.Value:
    """``bucketize``."""
    return search(boundaries, values, right=right, int32=out_int32, sorter=None)


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.sort.default: onnx_sort,
    aten.sort.stable: lambda x, stable=None, dim=-1, descending=False: onnx_sort(x, dim, descending),
    aten.argsort.default: lambda x, dim=-1, descending=False: onnx_sort(x, dim, descending)[1],
    aten.argsort.stable: lambda x, stable=None, dim=-1, descending=False: onnx_sort(x, dim, descending)[1],
    aten.topk.default: onnx_topk,
    aten.kthvalue.default: onnx_kthvalue,
    aten.median.default: onnx_median,
    aten.median.dim: onnx_median_dim,
    aten.nanmedian.default: onnx_nanmedian,
    aten.nanmedian.dim: onnx_nanmedian_dim,
    aten.mode.default: onnx_mode,
    aten._unique2.default: onnx_unique2,
    aten.unique_consecutive.default: onnx_unique_consecutive,
    aten.searchsorted.Tensor: onnx_searchsorted,
    aten.searchsorted.Scalar: onnx_searchsorted,
    aten.bucketize.Tensor: onnx_bucketize,
    aten.bucketize.Scalar: onnx_bucketize,
}
