"""Rows read at indices that are known to be in range, as those of a list's elements are.

``index_select`` rejects a negative index, and a file has to test for that. Who computes the indices needs no test, and
reads as ``x[places]`` does, where a negative index counts from the end.
"""

from __future__ import annotations

import torch
from torch import Tensor


def rows_at(x: Tensor, places: Tensor, dim: int = 0) -> Tensor:
    """``x.index_select(dim, places)`` for indices (int64 [m]) in range, and a ``dim`` that is not negative."""
    return torch.ops.aten.index.Tensor(x, [*[None] * dim, places])  # type: ignore[no-any-return]
