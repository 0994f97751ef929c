"""Elements moved about, with sizes of zero and shifts that may be known only when the graph runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import BOOL, INT64, cast, constant, is_float, length, op, ops, rank, shape_of, size, vector
from dy2st.onnx.translations.tensor_reductions import count_true

END = 2**63 - 1


def _flat(x: ir.Value) -> ir.Value:
    flat = op("Reshape", x, [-1])
    known = [size(x, d) for d in range(rank(x))]
    flat.shape = ir.Shape([None if None in known else math.prod(s for s in known if s is not None)])
    return flat


def _rolled(x: ir.Value, shift: Any, dim: int) -> ir.Value:
    dim %= rank(x)
    known = size(x, dim)
    if isinstance(shift, int) and known is not None:
        shift = shift % known if known else 0
        cut: Any = [known - shift]
        if not shift:
            return x
    else:
        count = length(x, dim)
        # ONNX's Mod takes the sign of the divisor, and an empty dimension none.
        cut = op("Sub", count, op("Mod", vector(shift), op("Max", count, 1)))
    back, front = op("Slice", x, cut, [END], [dim]), op("Slice", x, [0], cut, [dim])
    made = op("Concat", back, front, axis=dim)
    made.shape = x.shape
    return made


def onnx_copy(x: ir.Value, source: ir.Value, non_blocking: bool = False) -> ir.Value:
    """``copy``: ``source`` in the shape and dtype of ``x``, stretched where its size may be one."""
    source = cast(source, x.dtype)
    if rank(source) == rank(x) and not any(_stretches(source, x, d) for d in range(rank(x))):
        return op("Identity", source)
    return op("Expand", source, op("Shape", x))


def _stretches(source: ir.Value, x: ir.Value, dim: int) -> bool:
    """Whether ``source`` may have to be stretched along a dimension to the size of ``x``."""
    given, wanted = shape_of(source)[dim], shape_of(x)[dim]
    # A fixed size that is not one is right: what is turned round in place is a copy of another shape.
    return given != wanted and (given == 1 or not isinstance(given, int))


def onnx_squeeze(x: ir.Value, dim: int | Sequence[int]) -> ir.Value:
    """``squeeze``, which leaves a dimension of more than one as it is; the capture knows of all sizes whether it is."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    ones = [d for d in dims if rank(x) and size(x, d) == 1]
    return op("Squeeze", x, ones) if ones else op("Identity", x)


def onnx_roll(x: ir.Value, shifts: Any, dims: Sequence[int] = ()) -> ir.Value:
    """``roll``, by shifts of any size and sign."""
    shifts = list(shifts) if isinstance(shifts, (list, tuple)) else [shifts]
    if not rank(x):
        return op("Identity", x)
    if not dims:
        return op("Reshape", _rolled(_flat(x), shifts[0], 0), op("Shape", x), allowzero=1)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(x, shift, dim)
    return op("Identity", x)


def onnx_repeat_interleave(x: ir.Value, repeats: Any, dim: int | None = None, output_size: Any = None) -> ir.Value:
    """``repeat_interleave`` by one number for all."""
    if dim is None or not rank(x):
        x, dim = _flat(x), 0
    dim %= rank(x)
    spread = op("Unsqueeze", x, [dim + 1])
    ones = [constant([1])] * (dim + 1)
    tail = [constant([1])] * (rank(x) - dim - 1)
    repeated = op("Expand", spread, op("Concat", *ones, vector(repeats), *tail, axis=0))
    known = size(x, dim)
    sizes = [length(x, d) for d in range(rank(x))]
    if known is not None and isinstance(repeats, int):
        sizes[dim] = constant([known * repeats])
    else:
        sizes[dim] = op("Mul", sizes[dim], vector(repeats))
    return op("Reshape", repeated, op("Concat", *sizes, axis=0), allowzero=1)


def repeated_places(repeats: ir.Value) -> ir.Value:
    """For counts ``[2, 0, 1]`` the places ``[0, 0, 2]``."""
    ends = op("CumSum", cast(repeats, INT64), 0, dtype=INT64)
    total = op("ReduceSum", cast(repeats, INT64), keepdims=0)
    steps = op("Range", constant(0), total, constant(1), dtype=INT64)
    passed = op("LessOrEqual", op("Unsqueeze", ends, [0]), op("Unsqueeze", steps, [1]))
    passed.shape = ir.Shape([None, None])
    return count_true(passed, [1], keepdim=False)


def onnx_repeat_interleave_self(
    x: ir.Value, repeats: ir.Value, dim: int | None = None, output_size: Any = None
) -> ir.Value:
    """``repeat_interleave`` by a number for each slice."""
    if dim is None or not rank(x):
        x, dim = _flat(x), 0
    if not rank(repeats) or size(repeats, 0) == 1:
        return onnx_repeat_interleave(x, op("Reshape", repeats, []), dim)
    return op("Gather", x, repeated_places(repeats), axis=dim % rank(x))


def _places(x: ir.Value, offset: Any, dim1: int, dim2: int) -> tuple[list[int], ir.Value, ir.Value, ir.Value]:
    """Of a diagonal: the order that puts its dimensions last, what that makes, the same flat, and the places in it."""
    dims = rank(x)
    dim1, dim2 = dim1 % dims, dim2 % dims
    rest = [d for d in range(dims) if d not in {dim1, dim2}]
    order = [*rest, dim1, dim2]
    rows, columns = length(x, dim1), length(x, dim2)
    moved = op("Transpose", x, perm=order) if order != list(range(dims)) else x
    joined = op("Concat", *[length(x, d) for d in rest], op("Mul", rows, columns), axis=0)
    flat = op("Reshape", moved, joined, allowzero=1)
    if isinstance(offset, ir.Value):
        right, down = op("Max", vector(offset), 0), op("Max", op("Neg", vector(offset)), 0)
    else:
        right, down = constant([max(offset, 0)]), constant([max(-offset, 0)])
    count = op("Max", op("Min", op("Sub", rows, down), op("Sub", columns, right)), 0)
    steps = op("Range", constant(0), op("Squeeze", count, [0]), constant(1), dtype=INT64)
    start = op("Add", op("Mul", down, columns), right)
    return order, moved, flat, op("Add", op("Mul", steps, op("Add", columns, 1)), start)


def diagonal(x: ir.Value, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> ir.Value:
    """``diagonal``: picked by place, so that what lies beside it, NaN too, has no part in it."""
    _, _, flat, places = _places(x, offset, dim1, dim2)
    return op("Gather", flat, places, axis=rank(x) - 2)


def onnx_diagonal_scatter(x: ir.Value, source: ir.Value, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> ir.Value:
    """``diagonal_scatter``."""
    order, moved, flat, places = _places(x, offset, dim1, dim2)
    places = op("Expand", places, op("Shape", source))
    made = op("ScatterElements", flat, places, cast(source, x.dtype), axis=rank(x) - 2)
    made = op("Reshape", made, op("Shape", moved), allowzero=1)
    if order == sorted(order):
        return made
    return op("Transpose", made, perm=[order.index(d) for d in range(rank(x))])


def onnx_trace(x: ir.Value) -> ir.Value:
    """``trace``."""
    found = diagonal(x)
    return op("ReduceSum", found if is_float(found) else cast(found, INT64), keepdims=0)


def onnx_glu(x: ir.Value, dim: int = -1) -> ir.Value:
    """``glu``."""
    first, second = halves(x, dim)
    return op("Mul", first, op("Sigmoid", second))


def halves(x: ir.Value, dim: int) -> tuple[ir.Value, ir.Value]:
    """A tensor cut in two along a dimension of even size, which may be zero."""
    dim %= rank(x)
    known = size(x, dim)
    if known:
        first, second = ops("Split", x, axis=dim, num_outputs=2, dtypes=(None, None))
        return first, second
    middle = op("Div", length(x, dim), 2)
    return op("Slice", x, [0], middle, [dim]), op("Slice", x, middle, [END], [dim])


def onnx_split(x: ir.Value, split_size: int, dim: int = 0) -> Sequence[ir.Value]:
    """``split`` of a size that is known; one of zero has one part."""
    dim %= rank(x)
    known = size(x, dim)
    assert known is not None, "the number of parts is known when a program is captured"
    if known <= split_size:
        return [op("Identity", x)]
    parts = [min(split_size, known - start) for start in range(0, known, split_size)]
    return ops("Split", x, parts, axis=dim, dtypes=[None] * len(parts))


def onnx_nonzero(x: ir.Value) -> ir.Value:
    """``nonzero``: [count, dims], where a number has none; ONNX gives it one."""
    if rank(x):
        return op("Transpose", op("NonZero", x, dtype=INT64), perm=[1, 0])
    found = op("Transpose", op("NonZero", op("Unsqueeze", x, [0]), dtype=INT64), perm=[1, 0])
    return op("Slice", found, [0], [0], [1])


def onnx_nonzero_static(x: ir.Value, size: Any, fill_value: int = -1) -> ir.Value:
    """``nonzero_static``: the first places that are not zero, filled up."""
    dims = rank(x)
    count = vector(size)
    found = op("Transpose", op("NonZero", cast(x, BOOL)), perm=[1, 0])
    kept = op("Slice", found, [0], count, [0])
    missing = op("Sub", count, op("Slice", op("Shape", kept), [0], [1], [0]))
    filler = op("Expand", constant(fill_value), op("Concat", missing, constant([dims]), axis=0))
    return op("Concat", kept, filler, axis=0)


def onnx_cat(tensors: Sequence[ir.Value], dim: int = 0) -> ir.Value:
    """``cat``, which passes over tensors of shape [0]; so the result of such tensors alone is the first of them."""
    parts = [t for t in tensors if t.shape is None or list(t.shape) != [0]]
    if len(parts) < 2:
        return op("Identity", (parts or tensors)[0])
    return op("Concat", *parts, axis=dim)


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.cat.default: onnx_cat,
    aten.copy.default: onnx_copy,
    aten.squeeze.dim: onnx_squeeze,
    aten.squeeze.dims: onnx_squeeze,
    aten.roll.default: onnx_roll,
    aten.split.Tensor: onnx_split,
    aten.repeat_interleave.self_int: onnx_repeat_interleave,
    aten.repeat_interleave.Tensor: lambda repeats, output_size=None: cast(repeated_places(repeats), repeats.dtype),
    aten.repeat_interleave.self_Tensor: onnx_repeat_interleave_self,
    aten.diagonal.default: diagonal,
    aten.diagonal_copy.default: diagonal,
    aten.diagonal_scatter.default: onnx_diagonal_scatter,
    aten.trace.default: onnx_trace,
    aten.glu.default: onnx_glu,
    aten.nonzero.default: onnx_nonzero,
    aten.nonzero_static.default: onnx_nonzero_static,
}
