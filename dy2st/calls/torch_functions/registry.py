"""What is called in place of torch functions that are written for one size, where sizes are dynamic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from dy2st.calls.torch_functions import counting, losses, matrices, pooling, splitting, squeezing, stacking

BY_NAME: dict[str, Callable[..., Any]] = {
    "chunk": splitting.chunk,
    "split": splitting.split,
    "split_with_sizes": splitting.split,
    "narrow": splitting.narrow,
    "tensor_split": splitting.tensor_split,
    "unbind": splitting.unbind,
    "squeeze": squeezing.squeeze,
    "diff": pooling.diff,
    "linspace": pooling.linspace,
    "masked_select": pooling.masked_select,
    "repeat_interleave": pooling.repeat_interleave,
    "contiguous": pooling.contiguous,
    "one_hot": counting.one_hot,
    "tril_indices": counting.tril_indices,
    "triu_indices": counting.triu_indices,
    "combinations": counting.combinations,
    "cartesian_prod": counting.cartesian_prod,
    "vander": counting.vander,
    "cov": matrices.cov,
    "corrcoef": matrices.corrcoef,
    "kron": matrices.kron,
    "cdist": matrices.cdist,
    "sparse_coo_tensor": matrices.sparse_coo_tensor,
    "fill_diagonal_": matrices.fill_diagonal_,
    "index_reduce": matrices.index_reduce,
    "index_reduce_": matrices.index_reduce_,
    "pad": matrices.pad,
    "adaptive_avg_pool1d": pooling.adaptive_avg_pool1d,
    "adaptive_avg_pool2d": pooling.adaptive_avg_pool2d,
    "adaptive_avg_pool3d": pooling.adaptive_avg_pool3d,
    "adaptive_max_pool1d": pooling.adaptive_max_pool1d,
    "adaptive_max_pool2d": pooling.adaptive_max_pool2d,
    "adaptive_max_pool3d": pooling.adaptive_max_pool3d,
}


def _functions(name: str) -> list[Any]:
    """A torch function under all its names."""
    found = [getattr(owner, name, None) for owner in (torch, torch.functional, torch.Tensor, functional)]
    found.append(getattr(functional, f"_{name}", None))  # what a boolean_dispatch calls
    return [function for function in found if function is not None]


SIZED_CALLS: dict[Any, Callable[..., Any]] = {
    function: form for name, form in BY_NAME.items() for function in _functions(name)
} | {torch.linalg.vander: counting.linalg_vander, **stacking.FORMS, **losses.FORMS}


def call_for_any_size(function: Any, args: Any, kwargs: Any) -> Any:
    """The result for dynamic sizes, or NotImplemented if torch's own function will do."""
    form = SIZED_CALLS.get(function)
    return NotImplemented if form is None else form(*args, **kwargs)
