"""What is called in place of torch functions that are written for one size, where sizes are dynamic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from dy2st.graph import forms
from dy2st.operators import counted, left_out, matrices, mixed, pieces, squeezing

BY_NAME: dict[str, Callable[..., Any]] = {
    "chunk": pieces.chunk,
    "split": pieces.split,
    "split_with_sizes": pieces.split,
    "narrow": pieces.narrow,
    "tensor_split": pieces.tensor_split,
    "unbind": pieces.unbind,
    "squeeze": squeezing.squeeze,
    "diff": forms.diff,
    "linspace": forms.linspace,
    "masked_select": forms.masked_select,
    "repeat_interleave": forms.repeat_interleave,
    "contiguous": forms.contiguous,
    "one_hot": counted.one_hot,
    "tril_indices": counted.tril_indices,
    "triu_indices": counted.triu_indices,
    "combinations": counted.combinations,
    "cartesian_prod": counted.cartesian_prod,
    "vander": counted.vander,
    "cov": matrices.cov,
    "corrcoef": matrices.corrcoef,
    "kron": matrices.kron,
    "cdist": matrices.cdist,
    "sparse_coo_tensor": matrices.sparse_coo_tensor,
    "fill_diagonal_": matrices.fill_diagonal_,
    "index_reduce": matrices.index_reduce,
    "index_reduce_": matrices.index_reduce_,
    "pad": matrices.pad,
    "adaptive_avg_pool1d": forms.adaptive_avg_pool1d,
    "adaptive_avg_pool2d": forms.adaptive_avg_pool2d,
    "adaptive_avg_pool3d": forms.adaptive_avg_pool3d,
    "adaptive_max_pool1d": forms.adaptive_max_pool1d,
    "adaptive_max_pool2d": forms.adaptive_max_pool2d,
    "adaptive_max_pool3d": forms.adaptive_max_pool3d,
}


def _functions(name: str) -> list[Any]:
    """A torch function under all its names."""
    found = [getattr(owner, name, None) for owner in (torch, torch.functional, torch.Tensor, functional)]
    found.append(getattr(functional, f"_{name}", None))  # what a boolean_dispatch calls
    return [function for function in found if function is not None]


SIZED_CALLS: dict[Any, Callable[..., Any]] = {
    function: form for name, form in BY_NAME.items() for function in _functions(name)
} | {torch.linalg.vander: counted.linalg_vander, **mixed.FORMS, **left_out.FORMS}


def call_for_any_size(function: Any, args: Any, kwargs: Any) -> Any:
    """The result for dynamic sizes, or NotImplemented if torch's own function will do."""
    form = SIZED_CALLS.get(function)
    return NotImplemented if form is None else form(*args, **kwargs)
