"""Index tensors that stretch each other, and sources with more than is written, of sizes known when the graph runs.

torch's exporter computes the size of the places from the sizes of the index tensors, as the largest of them: of one
place and none that is one, where it has to be none. Here ONNX's own operators stretch the index tensors first.
``scatter`` reads of its source as much as it has places for, ONNX's operator wants no more than that.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch
from onnxscript.function_libs.torch_lib.ops import core

from dy2st.onnx.building import BOOL, INT64, cast, op, rank, vector
from dy2st.onnx.translations.lookups import from_zero

Index = ir.Value | None


def _of_one_shape(indices: Sequence[Index]) -> list[Index]:
    given = [index for index in indices if index is not None]
    shapes = [None if index.shape is None else list(index.shape) for index in given]
    alike = all(shape is not None and shape == shapes[0] and None not in shape for shape in shapes)
    if len(given) < 2 or alike or any(index.dtype == BOOL for index in given):
        return list(indices)
    numbers = [cast(index, INT64) for index in given]
    zero = functools.reduce(lambda a, b: op("Add", a, b), [op("Mul", number, 0) for number in numbers])
    return [None if index is None else op("Add", cast(index, INT64), zero) for index in indices]


def onnx_index_put(x: ir.Value, indices: Sequence[Index], values: ir.Value, accumulate: bool = False) -> Any:
    """``index_put``."""
    return core.aten_index_put(x, _of_one_shape(indices), values, accumulate)


def onnx_index(x: ir.Value, indices: Sequence[Index]) -> Any:
    """``index``."""
    return core.aten_index(x, _of_one_shape(indices))


def as_many(source: ir.Value, index: ir.Value) -> ir.Value:
    """What ``scatter`` reads of a source: as much as there are places."""
    if rank(source) != rank(index) or source.shape == index.shape:
        return source
    axes = list(range(rank(index)))
    part = op("Slice", source, [0] * len(axes), op("Shape", index), axes)
    part.shape = index.shape
    return part


def onnx_scatter(x: ir.Value, dim: int, index: ir.Value, source: ir.Value) -> Any:
    """``scatter`` of a tensor."""
    return core.aten_scatter_src(x, dim, from_zero(index), as_many(source, index))


def onnx_scatter_add(x: ir.Value, dim: int, index: ir.Value, source: ir.Value) -> Any:
    """``scatter_add``."""
    return core.aten_scatter_add(x, dim, from_zero(index), as_many(source, index))


def onnx_as_strided_scatter(
    x: ir.Value, source: ir.Value, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> ir.Value:
    """``as_strided_scatter``: ``source`` at the places that ``x.as_strided(size, stride, storage_offset)`` reads."""
    places = vector(0 if storage_offset is None else storage_offset)
    for i, (each, step) in enumerate(zip(size, stride, strict=True)):
        along = op("Mul", op("Range", 0, op("Squeeze", vector(each), [0]), 1), vector(step))
        places = op(
            "Add", places, op("Unsqueeze", along, list(range(1, len(size) - i))) if i < len(size) - 1 else along
        )
    flat = op("ScatterElements", op("Reshape", x, [-1]), op("Reshape", places, [-1]), op("Reshape", source, [-1]))
    made = op("Reshape", flat, op("Shape", x))
    made.shape = x.shape
    return made


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.index_put.default: onnx_index_put,
    aten.index.Tensor: onnx_index,
    aten.scatter.src: onnx_scatter,
    aten.scatter_add.default: onnx_scatter_add,
    aten.as_strided_scatter.default: onnx_as_strided_scatter,
    torch.ops.prims.as_strided_scatter.default: onnx_as_strided_scatter,
}
