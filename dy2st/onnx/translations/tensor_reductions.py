"""Reductions with eager's results for nothing, for NaN and for a single element.

onnxruntime 1.31 gives 0 as the mean of nothing, passes over NaN in ``ReduceMax``, ``ReduceMin``, ``ArgMax`` and
``ArgMin``, and is wrong about an axis counted from the back when a tensor is empty: axes are counted from the front.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import (
    BFLOAT16,
    BOOL,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT64,
    cast,
    constant,
    is_float,
    length,
    op,
    rank,
    scalar_like,
    shape_of,
    size,
    version,
)
from dy2st.onnx.translations.doubles import with_double

UINT8 = ir.DataType.UINT8
Dims = int | Sequence[int] | None


def axes_of(x: ir.Value, dim: Dims) -> list[int] | None:
    """The dimensions from the front; None for all."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return None
    dims = [dim] if isinstance(dim, int) else list(dim)
    return [d % max(rank(x), 1) for d in dims]


def reduced(kind: str, x: ir.Value, axes: list[int] | None, keepdim: bool) -> ir.Value:
    """A reduction; of a 0-d tensor it is the tensor."""
    if not rank(x):
        return op("Identity", x)
    found = op(kind, x, axes, keepdims=int(keepdim))
    dims = range(rank(x)) if axes is None else axes
    found.shape = ir.Shape([1 if d in dims else s for d, s in enumerate(shape_of(x)) if keepdim or d not in dims])
    return found


def flat(x: ir.Value) -> ir.Value:
    """All elements in one dimension."""
    found = op("Reshape", x, [-1])
    found.shape = ir.Shape([None])
    return found


def count_true(flags: ir.Value, axes: list[int] | None, keepdim: bool) -> ir.Value:
    """How many flags are set, as int64: 0 for none at all."""
    return reduced("ReduceSum", cast(flags, INT64), axes, keepdim)


def onnx_any(x: ir.Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:
    """``any``; of nothing it is False."""
    return _flag_reduced("ReduceMax", x, axes_of(x, dim), keepdim)


def onnx_all(x: ir.Value, dim: Dims = None, keepdim: bool = False) -> ir.Value:
    """``all``; of nothing it is True."""
    return _flag_reduced("ReduceMin", x, axes_of(x, dim), keepdim)


def _flag_reduced(kind: str, x: ir.Value, axes: list[int] | None, keepdim: bool) -> ir.Value:
    """The greatest or the least flag.

    onnxruntime 1.31 refuses to reduce no flags at all, and no int32 would be its least one, which is not zero. Of uint8
    the extremes are 0 and 255: False for the greatest of nothing, and True for the least.
    """
    flags, dims = cast(x, BOOL), range(rank(x)) if axes is None else axes
    if version() >= 20 and all(size(x, d) for d in dims):
        found = reduced(kind, flags, axes, keepdim)
    else:
        found = cast(reduced(kind, cast(flags, UINT8), axes, keepdim), BOOL)
    return cast(found, UINT8) if x.dtype == UINT8 else found


def number_of(x: ir.Value, axes: list[int] | None) -> int | ir.Value:
    """How many elements are reduced to one; a 0-d int64 value where the sizes are known only to the graph."""
    dims = range(rank(x)) if axes is None else axes
    sizes = [size(x, d) for d in dims]
    if None not in sizes:
        return math.prod(s for s in sizes if s is not None)
    if axes is None:
        return op("Size", x)
    if len(axes) == 1:
        return op("Squeeze", length(x, axes[0]))
    picked = op("Gather", op("Shape", x), axes, axis=0)
    return op("ReduceProd", picked, keepdims=0)


def _widened(x: ir.Value) -> ir.Value:
    """What eager adds up: float32 for the small floats."""
    return cast(x, FLOAT) if x.dtype in {FLOAT16, BFLOAT16} else x


def onnx_mean(x: ir.Value, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> ir.Value:
    """``mean``; of nothing it is NaN (onnxruntime's ReduceMean of nothing is 0)."""
    if isinstance(dtype, int) and dtype > 0:
        x = cast(x, ir.DataType(dtype))
    axes = axes_of(x, dim)
    number = number_of(x, axes)
    if not isinstance(number, int) and x.dtype in {FLOAT, DOUBLE}:
        return op("Div", reduced("ReduceSum", x, axes, keepdim), cast(number, x.dtype))
    mean = reduced("ReduceMean", x, axes, keepdim)
    if isinstance(number, int) and number:
        return mean
    count = scalar_like(number, x)
    # Zero times infinity is NaN: what is added is NaN for no elements, and nothing otherwise. (In a narrow dtype a sum
    # may be infinite where the mean is not.)
    return op("Add", mean, op("Mul", op("Div", scalar_like(1.0, x), count), 0.0))


def onnx_var_mean(
    x: ir.Value, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> tuple[ir.Value, ir.Value]:
    """``var_mean``: the variance and the mean; NaN where there are fewer elements than the correction takes away."""
    if not rank(x):
        x, dim, keepdim = op("Reshape", x, [1]), [0], False
        x.shape = ir.Shape([1])
    dtype, x, axes = x.dtype, _widened(x), axes_of(x, dim)
    taken = 1 if correction is None else correction
    mean = reduced("ReduceMean", x, axes, keepdim=True)
    squares = reduced("ReduceSumSquare", op("Sub", x, mean), axes, keepdim)
    number = number_of(x, axes)
    if isinstance(number, int):
        left: Any = float(max(number - taken, 0))
    else:
        left = op("Max", op("Sub", scalar_like(number, x), float(taken)), 0.0) if taken else scalar_like(number, x)
    var = op("Div", squares, left)
    center = mean if keepdim or not rank(x) else op("Squeeze", mean, axes)
    if number == 0 or isinstance(number, ir.Value):
        # A mean of nothing is 0 for onnxruntime, and 0 divided by 0 is NaN.
        nothing = op("Div", scalar_like(0, x), scalar_like(number, x))
        center = op("Add", center, op("Mul", nothing, 0.0))
    return cast(var, dtype), cast(center, dtype)


def onnx_var(x: ir.Value, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> ir.Value:
    """``var`` with a correction."""
    return onnx_var_mean(x, dim, correction, keepdim)[0]


def onnx_std(x: ir.Value, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> ir.Value:
    """``std`` with a correction."""
    return op("Sqrt", onnx_var_mean(x, dim, correction, keepdim)[0])


def _overloads(packet: Any, function: Callable[..., Any]) -> dict[Any, Callable[..., Any]]:
    """The overload with a correction, and the older ones, which have a flag in its place."""

    def some_dims(x: ir.Value, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> Any:
        return function(x, dim, int(unbiased), keepdim)

    return {
        packet.correction: function,
        packet.default: lambda x, unbiased=True: some_dims(x, None, unbiased),
        packet.dim: some_dims,
    }


def onnx_mse_loss(x: ir.Value, target: ir.Value, reduction: int = 1) -> ir.Value:
    """``mse_loss``; the mean of nothing is NaN."""
    difference = op("Sub", x, target)
    squares = op("Mul", difference, difference)
    if reduction == 0:
        return squares
    return onnx_mean(squares) if reduction == 1 else op("ReduceSum", squares, keepdims=0)


def onnx_std_mean(x: ir.Value, dim: Dims = None, correction: float | None = None, keepdim: bool = False) -> Any:
    """``std_mean``."""
    var, mean = onnx_var_mean(x, dim, correction, keepdim)
    return op("Sqrt", var), mean


def any_nan(x: ir.Value, axes: list[int] | None, keepdim: bool) -> ir.Value:
    """Whether one of the elements is NaN, along dimensions that are not empty."""
    flags = op("IsNaN", x)
    if version() >= 20:
        return reduced("ReduceMax", flags, axes, keepdim)
    return cast(reduced("ReduceMax", cast(flags, UINT8), axes, keepdim), BOOL)


def extreme(x: ir.Value, dim: Dims, keepdim: bool, kind: str) -> ir.Value:
    """``amax`` or ``amin`` (``kind`` is ReduceMax or ReduceMin); NaN if an element is."""
    axes = axes_of(x, dim)
    if x.dtype == BOOL:
        return cast(reduced(kind, cast(x, UINT8), axes, keepdim), BOOL)
    value = reduced(kind, x, axes, keepdim)
    if not is_float(x) or not rank(x):
        return value
    return op("Where", any_nan(x, axes, keepdim), math.nan, value)


def place(x: ir.Value, dim: int, keepdim: bool, kind: str) -> ir.Value:
    """Where the extreme is along a dimension (``kind`` is ArgMax or ArgMin): the first of several, or the first NaN."""
    if not rank(x):
        return op("Reshape", constant(0), [])
    dim %= rank(x)
    number = cast(x, UINT8) if x.dtype == BOOL else x
    found = op(kind, number, axis=dim, keepdims=int(keepdim))
    if not is_float(x):
        return found
    flags = cast(op("IsNaN", x), UINT8)
    first_nan = op("ArgMax", flags, axis=dim, keepdims=int(keepdim))
    return op("Where", any_nan(x, [dim], keepdim), first_nan, found)


def place_of(x: ir.Value, dim: int | None, keepdim: bool, kind: str) -> ir.Value:
    """``argmax`` or ``argmin``."""
    if dim is not None:
        return place(x, dim, keepdim, kind)
    if not rank(x):
        return constant(0)
    found = place(flat(x), 0, False, kind)
    return op("Reshape", found, [1] * rank(x)) if keepdim else found


def extreme_and_place(x: ir.Value, dim: int, keepdim: bool, kind: str) -> tuple[ir.Value, ir.Value]:
    """``max`` or ``min`` along a dimension: the value and where it is."""
    if not rank(x):
        return op("Identity", x), op("Identity", constant(0))
    dim %= rank(x)
    where = place(x, dim, True, kind)
    value = op("GatherElements", x, where, axis=dim)
    if keepdim:
        return value, where
    return op("Squeeze", value, [dim]), op("Squeeze", where, [dim])


def onnx_vector_norm(
    x: ir.Value, order: Any = 2, dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> ir.Value:
    """``linalg.vector_norm``."""
    if isinstance(dtype, int) and dtype > 0:
        x = cast(x, ir.DataType(dtype))
    result, x, axes = x.dtype, _widened(x), axes_of(x, dim)
    if isinstance(order, ir.Value):
        power = scalar_like(order, x)
        total = reduced("ReduceSum", op("Pow", op("Abs", x), power), axes, keepdim)
        return cast(op("Pow", total, op("Reciprocal", power)), result)
    if math.isinf(order):
        norm = extreme(op("Abs", x), dim, keepdim, "ReduceMax" if order > 0 else "ReduceMin")
    elif order == 0:
        norm = cast(count_true(cast(x, BOOL), axes, keepdim), x.dtype)
    elif order in {1, 2}:
        norm = reduced("ReduceL1" if order == 1 else "ReduceL2", op("Abs", x) if not rank(x) else x, axes, keepdim)
    else:
        total = reduced("ReduceSum", op("Pow", op("Abs", x), float(order)), axes, keepdim)
        norm = op("Pow", total, 1.0 / order)
    return cast(norm, result)


def onnx_item(x: ir.Value) -> ir.Value:
    """``item()``: a 0-d tensor is its own number; it stands in every ``x[t]`` of a loop."""
    number = op("Identity", x) if x.shape is not None and not rank(x) else op("Reshape", x, [])
    return with_double(number) if number.dtype == DOUBLE else number


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten._local_scalar_dense.default: onnx_item,
    aten.any.default: onnx_any,
    aten.any.dim: onnx_any,
    aten.any.dims: onnx_any,
    aten.all.default: onnx_all,
    aten._is_all_true.default: onnx_all,
    aten.all.dim: onnx_all,
    aten.all.dims: onnx_all,
    aten.mean.default: lambda x, dtype=None: onnx_mean(x, dtype=dtype),
    aten.mean.dim: onnx_mean,
    aten.mse_loss.default: onnx_mse_loss,
    **_overloads(aten.var, onnx_var),
    **_overloads(aten.std, onnx_std),
    **_overloads(aten.var_mean, onnx_var_mean),
    **_overloads(aten.std_mean, onnx_std_mean),
    aten.amax.default: lambda x, dim=None, keepdim=False: extreme(x, dim, keepdim, "ReduceMax"),
    aten.amin.default: lambda x, dim=None, keepdim=False: extreme(x, dim, keepdim, "ReduceMin"),
    aten.max.default: lambda x: extreme(x, None, False, "ReduceMax"),
    aten.min.default: lambda x: extreme(x, None, False, "ReduceMin"),
    aten.max.dim: lambda x, dim, keepdim=False: extreme_and_place(x, dim, keepdim, "ArgMax"),
    aten.min.dim: lambda x, dim, keepdim=False: extreme_and_place(x, dim, keepdim, "ArgMin"),
    aten.argmax.default: lambda x, dim=None, keepdim=False: place_of(x, dim, keepdim, "ArgMax"),
    aten.argmin.default: lambda x, dim=None, keepdim=False: place_of(x, dim, keepdim, "ArgMin"),
    aten.aminmax.default: lambda x, dim=None, keepdim=False: (
        extreme(x, dim, keepdim, "ReduceMin"),
        extreme(x, dim, keepdim, "ReduceMax"),
    ),
    aten.linalg_vector_norm.default: onnx_vector_norm,
}
