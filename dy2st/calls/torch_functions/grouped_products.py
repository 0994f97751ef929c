"""``grouped_mm``: the product of each group of rows with a matrix of its own, as in a mixture of experts.

Torch 2.13 has a kernel for it, whose rule for shapes takes no other dtype than bfloat16: a static program keeps it for
that. ONNX has none. Otherwise the rows of each group are gathered, multiplied, and put where they were. Those behind
the last group have no defined values; they are zero here.

Source: ``torch.nn.functional.grouped_mm``; aten/src/ATen/native/GroupedMMUtils.h.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from dy2st.calls.outside_world import Constants
from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.operators.export_session import current


def _of_groups(rows: torch.Tensor, matrices: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """``rows[start:end] @ matrix`` for each of the matrices, one below the other."""
    places = torch.arange(rows.shape[0], device=rows.device)
    groups = torch.searchsorted(ends.to(torch.int64), places, right=True)
    made = rows.new_zeros(rows.shape[0], matrices.shape[2])
    for number, matrix in enumerate(matrices.unbind()):
        (own,) = torch.where(groups == number)
        made = made.index_copy(0, own, rows[own] @ matrix)
    return made


def _of_parts(left: torch.Tensor, right: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """``left[:, start:end] @ right[start:end]`` for each group of what is summed over."""
    places = torch.arange(right.shape[0], device=right.device)
    groups = torch.searchsorted(ends.to(torch.int64), places, right=True)
    parts = [torch.where(groups == number)[0] for number in range(ends.shape[0])]
    return torch.stack([left[:, own] @ right[own] for own in parts])


@replaces(functional.grouped_mm, torch._grouped_mm)
def grouped_mm(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    *,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:
    """Two matrices of rows, or stacks of matrices; ``offs`` are the ends of the groups."""
    dims = mat_a.dim(), mat_b.dim()
    groups = mat_b.shape[0] if dims == (2, 3) else mat_a.shape[0] if dims == (3, 2) or offs is None else offs.shape[0]
    native = mat_a.dtype is torch.bfloat16 and not current().part(Constants).everything
    if native or bias is not None or not ints(groups):
        return NotImplemented
    if offs is None:
        made = torch.bmm(mat_a, mat_b)
    elif dims == (2, 3):
        made = _of_groups(mat_a, mat_b, offs)
    elif dims == (3, 2):
        made = _of_groups(mat_b.t(), mat_a.transpose(1, 2), offs).t()
    else:
        made = _of_parts(mat_a, mat_b, offs)
    return made if out_dtype is None else made.to(out_dtype)
