"""Rows read at places that are some, as those of a list's elements are.

``index_select`` takes no place that is negative, and a file has to test for that. What computes its places itself needs
no test: it reads as ``x[places]`` does, which counts from the end.
"""

from __future__ import annotations

import torch
from torch import Tensor


def rows_at(x: Tensor, places: Tensor, dim: int = 0) -> Tensor:
    """``x.index_select(dim, places)`` for places (int64 [m]) that there are, and a ``dim`` that is not negative."""
    return torch.ops.aten.index.Tensor(x, [*[None] * dim, places])  # type: ignore[no-any-return]
