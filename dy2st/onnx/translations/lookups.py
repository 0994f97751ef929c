"""Operators whose indices count from zero: a negative one is an error in eager, and a place from the end in ONNX.

The file fails for it, too: what is negative becomes a number that is no place of any tensor, unless
:mod:`dy2st.onnx.passes.index_tests` finds that no index is negative. Indexing as in ``x[i]`` counts from the end in
both.

Source: ONNX operators Gather-13, GatherElements-13, ScatterElements-18, https://onnx.ai/onnx/operators/; the checks of
``gather``, ``index_select`` and ``scatter`` in ATen/native/TensorAdvancedIndexing.cpp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
from onnxscript.function_libs.torch_lib.ops import core, nn

from dy2st.onnx.building import INT32, INT64, cast, is_float, op, rank, scalar_like

# For each dtype of indices a number that no tensor has as many elements as.
NO_PLACE = {INT64: 2**63 - 1, INT32: 2**31 - 1}
# Their results have the elements of their first input.
_STRETCHING = frozenset(("Expand", "Reshape", "Unsqueeze"))


def from_zero(index: ir.Value) -> ir.Value:
    """Indices of which a negative one makes the lookup fail. Stretched ones are tested before they are stretched."""
    made = index.producer()
    source = made.inputs[0] if made is not None and made.domain == "" and made.op_type in _STRETCHING else None
    if made is not None and source is not None:
        tested = op(made.op_type, from_zero(source), *made.inputs[1:], **made.attributes)
        tested.shape = index.shape
        return tested
    index = index if index.dtype in NO_PLACE else cast(index, INT64)
    return op("Where", op("Less", index, 0), NO_PLACE[index.dtype or INT64], index)


def onnx_index_select(x: ir.Value, dim: int, index: ir.Value) -> Any:
    """``index_select``."""
    return core.aten_index_select(x, dim, from_zero(index))


def onnx_gather(x: ir.Value, dim: int, index: ir.Value, sparse_grad: bool = False) -> Any:
    """``gather``."""
    return core.aten_gather(x, dim, from_zero(index), sparse_grad)


def onnx_embedding(
    weight: ir.Value, indices: ir.Value, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """``embedding``."""
    return core.aten_embedding(weight, from_zero(indices), padding_idx, scale_grad_by_freq, sparse)


def _bags(translation: Callable[..., Any]) -> Callable[..., Any]:
    """A translation of ``embedding_bag``."""

    @functools.wraps(translation)
    def onnx_embedding_bag(weight: ir.Value, indices: ir.Value, *args: Any, **options: Any) -> Any:
        return translation(weight, from_zero(indices), *args, **options)

    return onnx_embedding_bag


def onnx_scatter_value(x: ir.Value, dim: int, index: ir.Value, value: float) -> Any:
    """``scatter`` of a number."""
    return core.aten_scatter_value(x, dim, from_zero(index), value)


def _along(x: ir.Value, dim: int, index: ir.Value, source: ir.Value, *, add: bool) -> Any:
    """``source`` at the rows of a dimension that ``index`` names."""
    if not rank(x):
        row = _along(_vector(x), 0, _vector(index), _vector(source), add=add)
        return op("Reshape", row, [], dtype=x.dtype)
    return core.aten_index_put(x, _dimension(x, dim, from_zero(index)), source, add)


def _vector(x: ir.Value) -> ir.Value:
    """The one element of a number, with a dimension."""
    made = op("Reshape", x, [1])
    made.shape = ir.Shape([1])
    return made


def _dimension(x: ir.Value, dim: int, index: ir.Value) -> list[ir.Value | None]:
    """What indexing takes for the rows of a dimension; a number is one of them."""
    index = index if rank(index) else _vector(index)
    return [*[None] * (dim % max(rank(x), 1)), index]


def onnx_index_copy(x: ir.Value, dim: int, index: ir.Value, source: ir.Value) -> Any:
    """``index_copy``."""
    return _along(x, dim, index, source, add=False)


def onnx_index_fill(x: ir.Value, dim: int, index: ir.Value, value: Any) -> Any:
    """``index_fill``, whose indices count from the end, too."""
    return core.aten_index_put(x, _dimension(x, dim, index), _vector(scalar_like(value, x)))


def onnx_index_add(x: ir.Value, dim: int, index: ir.Value, source: ir.Value, alpha: float = 1) -> Any:
    """``index_add``."""
    scaled = source if alpha == 1 else op("Mul", source, alpha)
    return _along(x, dim, index, scaled, add=True)


def _target(target: ir.Value, ignored: int) -> ir.Value:
    """Classes of which a negative one makes the loss fail, but for the one that it leaves out."""
    if target.dtype is None or is_float(target):
        return target
    checked = from_zero(target)
    return checked if ignored >= 0 else op("Where", op("Equal", target, ignored), target, checked)


def onnx_nll_loss(
    x: ir.Value, target: ir.Value, weight: ir.Value | None = None, reduction: int = 1, ignore_index: int = -100
) -> Any:
    """``nll_loss``."""
    return nn.aten_nll_loss(x, _target(target, ignore_index), weight, reduction, ignore_index)


def onnx_nll_loss_forward(
    x: ir.Value, target: ir.Value, weight: ir.Value | None, reduction: int, ignore_index: int
) -> Any:
    """``nll_loss_forward``."""
    return nn.aten_nll_loss_forward(x, _target(target, ignore_index), weight, reduction, ignore_index)


def onnx_cross_entropy_loss(
    x: ir.Value,
    target: ir.Value,
    weight: ir.Value | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    """``cross_entropy_loss``."""
    checked = _target(target, ignore_index)
    return nn.aten_cross_entropy_loss(x, checked, weight, reduction, ignore_index, label_smoothing)


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.index_select.default: onnx_index_select,
    aten.gather.default: onnx_gather,
    aten.embedding.default: onnx_embedding,
    aten.embedding_bag.default: _bags(core.aten_embedding_bag),
    aten.embedding_bag.padding_idx: _bags(core.aten_embedding_bag_padding_idx),
    aten._embedding_bag.default: _bags(core.aten_embedding_bag_padding_idx),
    aten._embedding_bag_forward_only.default: _bags(core.aten_embedding_bag_padding_idx),
    aten.scatter.value: onnx_scatter_value,
    aten.index_copy.default: onnx_index_copy,
    aten.index_fill.int_Scalar: onnx_index_fill,
    aten.index_fill.int_Tensor: onnx_index_fill,
    aten.index_add.default: onnx_index_add,
    aten.nll_loss.default: onnx_nll_loss,
    aten.nll_loss_forward.default: onnx_nll_loss_forward,
    aten.cross_entropy_loss.default: onnx_cross_entropy_loss,
}
