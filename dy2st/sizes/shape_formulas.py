"""Shapes of results as formulas, where torch's own rules take a branch by the example's sizes or give up.

A slice has ``max(0, stop - start)`` rows whatever the sizes are, also where its bounds are data-dependent; the output
of a pooling with ``ceil_mode`` is the smaller of two quotients; a recurrent layer has as many outputs as inputs, and
torch would unroll it to say so. Used while a program is captured and lowered.

Source: Python reference 3.3.7 (slices); ``pooling_output_shape`` in ATen/native/Pool.h.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import _meta_registrations
from torch._decomp import decomposition_table
from torch._subclasses import fake_impls

from dy2st.tracing.replaced import replaced
from dy2st.tracing.tracer import known_true

SLICE = torch.ops.aten.slice.Tensor


def bound(size: Any, index: Any, missing: Any) -> Any:
    """The bound of a slice counted from the front; it may lie behind the end."""
    if index is None:
        return missing
    if isinstance(index, int) and index >= sys.maxsize:
        return size
    if known_true(index >= 0):
        return index
    # One if the index counts from the end, else zero.
    from_end = 1 if known_true(index < 0) else torch.sym_min(1, torch.sym_max(0, -index))
    first = index + size * from_end
    return first if known_true(first >= 0) else torch.sym_max(first, 0)


def rows_of_slice(size: Any, start: Any, end: Any, step: Any) -> Any:
    """How many rows ``[start:end:step]`` of ``size`` rows has."""
    first, last = bound(size, start, 0), bound(size, end, size)
    # What is counted from the end is no further; torch can't tell that of the greater of it and zero.
    from_end = end is not None and known_true(end < 0)
    if not from_end and not known_true(last <= size):
        last = size if known_true(last >= size) else torch.sym_min(last, size)
    rows = last - first
    if not known_true(rows >= 0):
        rows = 0 if known_true(rows <= 0) else torch.sym_max(rows, 0)
    return rows if step == 1 else (rows + step - 1) // step


def slice_rule(original: Any) -> Any:
    """Torch's rule for a slice, with the number of rows as a formula."""

    def rule(
        fake_mode: Any, func: Any, self: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
    ) -> Any:
        if self.dim() == 0 or step <= 0 or not -self.dim() <= dim < self.dim():
            return original(fake_mode, func, self, dim, start, end, step)
        dim = dim % self.dim()
        rows = rows_of_slice(self.shape[dim], start, end, step)
        first = bound(self.shape[dim], start, 0)
        sizes, strides = list(self.shape), list(self.stride())
        sizes[dim], strides[dim] = rows, strides[dim] * step
        # Where no row is left the offset means nothing.
        return self.as_strided(sizes, strides, self.storage_offset() + first * self.stride(dim))

    return rule


def pooled_size(
    size: Any, kernel: Any, pad_left: Any, pad_right: Any, stride: Any, dilation: Any, ceil_mode: bool
) -> Any:
    """How many windows a pooling has."""
    reach = size + pad_left + pad_right - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return reach // stride + 1
    # The last window starts inside the input or its left padding.
    return torch.sym_min((reach + stride - 1) // stride + 1, (size + pad_left + stride - 1) // stride)


def recurrent_rule(x: Any, states: Any, _params: Any, *options: Any) -> tuple[Any, ...]:
    """The outputs and last states of ``lstm`` (with two states), ``gru`` and ``rnn`` (with one)."""
    bidirectional, batch_first = options[-2:]
    given = list(states) if isinstance(states, (list, tuple)) else [states]
    steps, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    outputs = x.new_empty([steps, batch, given[0].shape[2] * (2 if bidirectional else 1)])
    last = [x.new_empty(state.shape) for state in given]
    return (outputs.transpose(0, 1) if batch_first else outputs, *last)


@functools.cache
def _for_stand_ins(unrolled: Any) -> Any:
    """The kernel of a recurrent operator: the rule, unless there is something to compute with."""

    def kernel(x: Any, *arguments: Any) -> Any:
        return (
            unrolled(x, *arguments) if type(x) in (torch.Tensor, torch.nn.Parameter) else recurrent_rule(x, *arguments)
        )

    return kernel


def _replace_kernels(function: Any, kernels: dict[Any, Any], decomposition: Any) -> None:
    decomposition_table[function] = decomposition
    function.py_kernels.update(kernels)
    function._dispatch_cache.clear()


RECURRENT: tuple[Any, ...] = (
    torch.ops.aten.lstm.input,
    torch.ops.aten.gru.input,
    torch.ops.aten.rnn_tanh.input,
    torch.ops.aten.rnn_relu.input,
)


@contextlib.contextmanager
def closed_forms() -> Iterator[None]:
    """Use these rules for a while."""
    rules = fake_impls.op_implementations_dict
    slicing = rules[SLICE]
    rules[SLICE] = slice_rule(slicing)
    unrolled = {function: (dict(function.py_kernels), decomposition_table[function]) for function in RECURRENT}
    for function in RECURRENT:
        kernel = _for_stand_ins(decomposition_table[function])
        _replace_kernels(function, dict.fromkeys(function.py_kernels, kernel), kernel)
    try:
        with replaced([(_meta_registrations, "pooling_output_shape_pad_lr", pooled_size)]):
            yield
    finally:
        rules[SLICE] = slicing
        for function, (kernels, decomposition) in unrolled.items():
            _replace_kernels(function, kernels, decomposition)
