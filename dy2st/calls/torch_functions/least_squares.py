"""``torch.linalg.lstsq``, which torch can't trace: the size of its residuals depends on the matrix.

A matrix of full rank has one solution of least norm, which the pseudoinverse gives. Of another matrix what eager
returns depends on rounding: whether a small singular value counts is decided by an estimate. There the program fails.

Source: LAPACK Users' Guide, ``xGELSY`` and ``xGELSD``; G. Golub and C. Van Loan, "Matrix Computations", 5.5.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.calls.torch_functions.registry import replaces
from dy2st.errors import DifferentRanksError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE
from dy2st.tracing.tracer import at_least
from dy2st.values.number import number_tensor
from dy2st.values.undefined import Undefined

# Those that take matrices of any rank.
_OF_ANY_RANK = (None, "gelsy", "gelsd", "gelss")
# Those that give neither residuals nor singular values.
_WITHOUT_VALUES = (None, "gelsy")
# How far the singular values are from what does not count: LAPACK's estimates of them are right within a small factor.
_MARGIN = 16.0


@replaces(torch.linalg.lstsq)
def _lstsq(a: Any, b: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Solution, residuals, rank and singular values of matrices ``a`` of full rank."""
    if driver not in _OF_ANY_RANK or not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return NotImplemented
    if rcond is not None and not 0 <= rcond < 1:
        return NotImplemented
    capture = MODE.capture
    assert capture is not None
    values = torch.linalg.svdvals(a)
    height, width = a.shape[-2:]
    least = torch.maximum(number_tensor(height), number_tensor(width)) * torch.finfo(a.dtype).eps
    floor = (least if rcond is None else least.clamp(min=rcond)).to(values.dtype) * _MARGIN
    full = (values > floor * torch.linalg.vector_norm(a, dim=(-2, -1)).unsqueeze(-1)).all()
    what = "torch.linalg.lstsq: the matrix has no full rank, and what eager returns depends on rounding"
    capture.guards.require(full, location_of(users_frame()), what, always=True)
    sides = b.unsqueeze(-1) if _is_vector(a, b) else b
    solution = torch.linalg.pinv(capture.guards.after(a)) @ sides
    found = solution.squeeze(-1) if sides is not b else solution
    rank = torch.minimum(number_tensor(height), number_tensor(width)).expand(a.shape[:-2])
    parts = (found, _residuals(a, solution, sides, driver), rank.clone(), _of_driver(values, driver))
    return torch.return_types.linalg_lstsq(parts)  # type: ignore[attr-defined]


def _is_vector(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether ``b`` is one right side for each matrix, and no matrix of several."""
    if b.dim() == 1:
        return True
    # torch asks, too: where sizes decide about it, the graph is right for these only.
    return b.dim() == a.dim() - 1 and all(x == y for x, y in zip(b.shape, a.shape[:-1], strict=True))


def _residuals(a: torch.Tensor, solution: torch.Tensor, sides: torch.Tensor, driver: str | None) -> Any:
    """Those of matrices that are higher than wide; others have none, nor have any of the driver ``gelsy``."""
    height, width = a.shape[-2:]
    if driver in _WITHOUT_VALUES or at_least(width, height):
        return torch.empty([0], dtype=a.dtype.to_real())
    if at_least(height, width + 1):
        return (a @ solution - sides).abs().square().sum(-2)
    return Undefined(
        "residuals",
        "it is empty unless the matrix is higher than wide, and the size of the matrix is dynamic",
        "compute it: (a @ x - b).square().sum(-2)",
        location_of(users_frame()),
        DifferentRanksError,
    )


def _of_driver(values: torch.Tensor, driver: str | None) -> torch.Tensor:
    """The singular values, which not all drivers give."""
    return torch.empty([0], dtype=values.dtype) if driver in _WITHOUT_VALUES else values
