"""Torch functions written so that any size will do, where torch's own are written for one size."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.staging.conditions import condition, either, require
from dy2st.tracing.row_reads import rows_at
from dy2st.tracing.tracer import same_size


@replaces("diff", sized=True)
def diff(
    input: torch.Tensor,  # noqa: A002 - torch's name
    n: int = 1,
    dim: int = -1,
    prepend: torch.Tensor | None = None,
    append: torch.Tensor | None = None,
) -> Any:
    """``torch.diff``: differences of neighbours, n times."""
    parts = [part for part in (prepend, input, append) if part is not None]
    if n < 0 or input.dim() == 0 or ints(*(part.shape[dim] for part in parts)):
        return NotImplemented
    result = input if len(parts) == 1 else torch.cat(parts, dim)
    for _ in range(n):
        later, earlier = torch.ops.aten.slice.Tensor(result, dim, 1), torch.ops.aten.slice.Tensor(result, dim, 0, -1)
        result = torch.logical_xor(later, earlier) if result.dtype is torch.bool else later - earlier
    return result


@replaces("masked_select")
def masked_select(input: torch.Tensor, mask: torch.Tensor) -> Any:  # noqa: A002
    """``torch.masked_select``: by a mask of the same shape."""
    values, chosen = torch.broadcast_tensors(input, mask)
    return values[chosen]


@replaces("repeat_interleave")
def repeat_interleave(
    input: torch.Tensor,  # noqa: A002
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Any:
    """``torch.repeat_interleave`` by a vector of counts: element i as often as the i-th count says."""
    counts = input if repeats is None else repeats
    if not isinstance(counts, torch.Tensor) or counts.dim() != 1 or counts.dtype not in (torch.int64, torch.int32):
        return NotImplemented
    of_all = input.flatten() if dim is None else input
    if repeats is not None:
        number, size = counts.shape[0], of_all.shape[dim or 0]
        if ints(number, size) and number not in (1, size):
            return NotImplemented
        if not same_size(number, size):
            # One count is for all of them.
            if not (ints(number) and number == 1):
                fits = either(condition(number == size), condition(number == 1))
                require(fits, RuntimeError, "repeats must have the same size as input along dim")
            counts = counts[torch.arange(size).clamp(max=number - 1)]
    require((counts >= 0).all(), RuntimeError, "repeats can not be negative")
    ends = counts.to(torch.int64).cumsum(0)
    total: Any = counts.sum().item() if output_size is None else output_size
    torch._check(total >= 0)
    # How many elements have ended before each place.
    ended = torch.zeros([total + 1], dtype=torch.int64).index_put((ends,), torch.ones_like(ends), accumulate=True)
    places = ended.cumsum(0)[:total]
    if repeats is None:
        return places
    return rows_at(of_all, places, (dim or 0) % of_all.dim())


@replaces("max_pool1d", sized=True)
def max_pool1d(
    input: torch.Tensor,  # noqa: A002
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool1d`` along a data-dependent size: torch's own wants a number there."""
    size: Any = input.shape[-1] if input.dim() else 0
    if not isinstance(size, torch.SymInt) or not free_unbacked_symbols(size):
        return NotImplemented
    options = kernel_size if stride is None else stride, padding, dilation, ceil_mode
    values, places = torch.ops.aten.max_pool1d_with_indices.default(input, kernel_size, *options)
    return (values, places) if return_indices else values


def _bins(size: Any, bins: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which elements belong to which bin [bins, size] (bool), and how many do [bins]."""
    i, j = torch.arange(bins), torch.arange(size)
    start = torch.div(i * size, bins, rounding_mode="floor")
    end = torch.div((i + 1) * size + bins - 1, bins, rounding_mode="floor")
    inside = (j >= start[:, None]) & (j < end[:, None])
    return inside, end - start


def _pooled(input: torch.Tensor, sizes: list[Any], *, largest: bool) -> torch.Tensor:  # noqa: A002
    """Means (or maxima) over bins of the last dimensions; a size of None keeps a dimension."""
    result = input
    for position, bins in enumerate(sizes):
        dim = position - len(sizes)
        if bins is None or (isinstance(result.shape[dim], int) and result.shape[dim] == bins):
            continue
        moved = result.movedim(dim, -1)
        inside, count = _bins(moved.shape[-1], bins)
        if largest:
            lowest = torch.full((), float("-inf"), dtype=result.dtype)
            pooled = torch.where(inside, moved.unsqueeze(-2), lowest).amax(-1)
        else:
            zero = torch.zeros((), dtype=result.dtype)
            pooled = torch.where(inside, moved.unsqueeze(-2), zero).sum(-1) / count
        result = pooled.movedim(-1, dim)
    return result


def _adaptive(rank: int, *, largest: bool) -> Any:
    def pool(input: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:  # noqa: A002
        given = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank
        sizes = [None if k is None else int(k) for k in given]
        lengths: list[Any] = list(input.shape[-rank:])
        dynamic = [not isinstance(n, int) and k is not None for n, k in zip(lengths, sizes, strict=True)]
        if not any(dynamic) or return_indices or all(k == 1 for k in sizes) or not input.dtype.is_floating_point:
            return NotImplemented
        return _pooled(input, sizes, largest=largest)

    return pool


for _rank in (1, 2, 3):
    replaces(f"adaptive_avg_pool{_rank}d", sized=True)(_adaptive(_rank, largest=False))
    replaces(f"adaptive_max_pool{_rank}d", sized=True)(_adaptive(_rank, largest=True))
