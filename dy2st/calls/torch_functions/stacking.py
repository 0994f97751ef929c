"""Torch functions of several tensors that torch writes for one size, or of which ONNX wants one dtype.

Source: ``take_along_dim`` of ATen/native/TensorAdvancedIndexing.cpp; ``inner`` and ``multi_dot`` of
ATen/native/LinearAlgebra.cpp; ``pad_sequence`` of ATen/native/PackedSequence.cpp; type promotion of ``torch.stack``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dy2st.calls.torch_functions.matrices import tensordot
from dy2st.calls.torch_functions.registry import known, replaces
from dy2st.staging.conditions import require
from dy2st.tracing.size_facts import assume, expression
from dy2st.tracing.tracer import common_dtype
from dy2st.values.number import promoted_dtype
from dy2st.values.stacked_list import StackedList, has_rows, uneven_list
from dy2st.values.uneven_rows import padded

Tensor = torch.Tensor


@replaces("take_along_dim", sized=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, **options: Any) -> Any:  # noqa: A002
    """``torch.take_along_dim``: ``gather`` of operands that are stretched to each other's other dimensions."""
    if options:
        return NotImplemented
    if dim is None:
        return input.flatten().gather(0, indices.flatten())
    if input.dim() != indices.dim():
        return NotImplemented
    dim %= input.dim()
    others = [1 if d == dim else size for d, size in enumerate(indices.shape)]
    wide = torch.broadcast_shapes([1 if d == dim else size for d, size in enumerate(input.shape)], others)
    of_input, of_indices = (
        tensor.expand([tensor.shape[d] if d == dim else size for d, size in enumerate(wide)])
        for tensor in (input, indices)
    )
    return of_input.gather(dim, of_indices)


def _refuse_none(rows: StackedList, name: str) -> None:
    require(rows.length > 0, RuntimeError, f"{name}() expects a non-empty list")


@replaces(torch._C._nn.pad_sequence)
def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """``torch.nn.utils.rnn.pad_sequence``: each as long as the longest, by rows behind or before it."""
    given = list(sequences)
    if has_rows(given):
        listed = uneven_list(given)
        if listed is None:
            return NotImplemented
        _refuse_none(listed, "pad_sequence")
        made = padded(*listed.in_a_row, padding_value, left=padding_side == "left")
        return made if batch_first else made.transpose(0, 1)
    if known(given) or not all(
        isinstance(each, Tensor) and each.dim() and each.dtype == given[0].dtype for each in given
    ):
        return NotImplemented
    longest: Any = 0
    for each in given:
        longest = torch.sym_max(longest, each.shape[0])
    found = []
    for each in given:
        missing = longest - each.shape[0]
        if isinstance(missing, torch.SymInt):
            fact = missing >= 0
            assume(missing.node.shape_env, expression(fact))
        rows = each.new_full((missing, *each.shape[1:]), padding_value)
        found.append(torch.cat([each, rows] if padding_side == "right" else [rows, each]))
    return torch.stack(found, 0 if batch_first else 1)


@replaces("cross")
def cross(input: Tensor, other: Tensor, dim: int | None = None, **options: Any) -> Any:  # noqa: A002
    """``torch.cross``: of the first dimension with three elements, where none is given."""
    found = next((d for d, size in enumerate(input.shape) if size == 3), None)
    if options or dim is not None or found is None:
        return NotImplemented
    return torch.linalg.cross(input, other, dim=found)


@replaces("isin", sized=True)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:  # noqa: ARG001
    """``torch.isin``: each compared with all, whichever way is the fastest for the sizes."""
    both = isinstance(elements, Tensor) and isinstance(test_elements, Tensor)
    if not both:
        return NotImplemented
    found = (elements.unsqueeze(-1) == test_elements.flatten()).any(-1)
    return ~found if invert else found


@replaces("inner", sized=True)
def inner(input: Tensor, other: Tensor, **options: Any) -> Any:  # noqa: A002
    """``torch.inner``: over the last dimensions."""
    if options:
        return NotImplemented
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    return tensordot(input, other, dims=([-1], [-1]))


@replaces(torch.linalg.multi_dot, sized=True)
def multi_dot(tensors: Sequence[Tensor], **options: Any) -> Any:
    """``torch.linalg.multi_dot``, from the left: which order is the fastest is a matter of the sizes."""
    if options:
        return NotImplemented
    return functools.reduce(torch.matmul, tensors)


@replaces("ldexp")
def ldexp(input: Tensor, other: Tensor, **options: Any) -> Any:  # noqa: A002
    """``torch.ldexp``: the power in the dtype of the product."""
    if options or other.dtype.is_floating_point:
        return NotImplemented
    dtype = promoted_dtype(input, float)
    return input * torch.pow(2.0, other.to(dtype))


def of_one_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a sequence of tensors, which are promoted to one dtype first."""

    @functools.wraps(function)
    def promoted(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        alike = isinstance(tensors, (list, tuple)) and all(isinstance(each, Tensor) for each in tensors)
        if not alike or len({each.dtype for each in tensors}) < 2 or kwargs.get("out") is not None:
            return NotImplemented
        dtype = common_dtype(each.dtype for each in tensors)
        return function([each.to(dtype) for each in tensors], *args, **kwargs)

    return promoted


_stack = of_one_dtype(torch.stack)


@replaces(torch.stack)
def stack(tensors: Any, dim: int = 0, **options: Any) -> Any:
    """``torch.stack``: of tensors whose sizes differ as far as can be told, these have to be equal."""
    uneven = isinstance(tensors, (list, tuple)) and any(isinstance(v, StackedList) and v.uneven for v in tensors)
    found = uneven_list(tensors) if uneven and not options else None
    if found is None:
        return _stack(tensors, dim, **options)
    _refuse_none(found, "stack")
    rows, lengths = found.in_a_row
    require((lengths == lengths[0]).all(), RuntimeError, "stack expects each tensor to be equal size")
    return torch.movedim(padded(rows, lengths, 0), 0, dim)


for _function in (torch.hstack, torch.vstack, torch.dstack, torch.row_stack, torch.column_stack):
    replaces(_function)(of_one_dtype(_function))
