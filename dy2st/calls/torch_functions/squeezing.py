"""``squeeze`` of a dimension whose size may be one for some inputs: eager's result then has another rank.

Of a size that is data (``mask.nonzero().squeeze()``) both results are traced, one in each arm of a branch. Of a
declared dimension it is an assumption, like any other that a capture makes of a size, and refused as one. Then both
are traced, and taken if the program's results are of one rank all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from dy2st.calls.torch_functions.registry import replaces
from dy2st.plan import Alternative, plan
from dy2st.source.user_frames import users_frame
from dy2st.staging.branches.staged_branch import StagedBranch
from dy2st.staging.session import MODE
from dy2st.tracing.tracer import known_true
from dy2st.values.number import number_tensor

aten = torch.ops.aten


@replaces("squeeze", sized=True)
def squeeze(input: Any, dim: Any = None) -> Any:  # noqa: A002 - torch's name
    """``torch.squeeze``; NotImplemented where torch raises."""
    if MODE.capture is None:
        return NotImplemented
    rank = input.dim()
    given = range(rank) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    if not all(isinstance(d, int) and -rank <= d < rank for d in given):
        return NotImplemented
    return _without(input, sorted({d % rank for d in given}))


def _without(tensor: torch.Tensor, dims: Sequence[int]) -> Any:
    """A tensor without those of ``dims`` whose size is one."""
    ones: list[int] = []
    for place, d in enumerate(dims):
        size = tensor.shape[d]
        unknown = not known_true(size == 1) and not known_true(size != 1)
        if unknown and (free_unbacked_symbols(size) or _both()):
            return _by_data(tensor, d, [*ones, *dims[place + 1 :]])
        # Whether a declared size is one is what torch decides by the example, and says so.
        if size == 1:
            ones.append(d)
    return aten.squeeze.dims(tensor, ones)


def _both() -> bool:
    """Whether both results of a declared size are traced."""
    return plan().takes(Alternative.SQUEEZED_BY_SIZE) and not plan().has_taken(Alternative.RESULTS_OF_ANY_RANK)


def _by_data(tensor: torch.Tensor, dim: int, others: Sequence[int]) -> Any:
    capture = MODE.capture
    assert capture is not None
    branch = StagedBranch(capture, number_tensor(tensor.shape[dim]) == 1, (), users_frame())
    branch.then()
    then = _without(tensor.select(dim, 0), [d - (d > dim) for d in others])
    branch.orelse()
    return branch.choose(then, _without(tensor, others))
