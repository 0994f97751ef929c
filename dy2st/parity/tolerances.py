"""How close two numbers must be, by dtype: the one table.

Two numbers agree if ``abs(actual - expected) <= atol + rtol * abs(expected)``, both taken in float64. The floats'
bounds lie ten to a thousand times above the round-off of the dtype: enough for another order of additions and another
``exp`` over some hundred steps, far too little for a wrong branch or a trip too many.

    dtype      rtol   atol
    float64    1e-7   1e-9
    float32    1e-4   1e-5
    float16    1e-2   1e-3
    bfloat16   5e-2   1e-2
    complex    as the real dtype of the parts
    int, bool  exact
"""

from __future__ import annotations

import math

import torch

from dy2st.errors import UsageError
from dy2st.report.model import Tolerance

EXACT = Tolerance(0.0, 0.0)

TOLERANCES = {
    torch.float64: Tolerance(1e-7, 1e-9),
    torch.float32: Tolerance(1e-4, 1e-5),
    torch.float16: Tolerance(1e-2, 1e-3),
    torch.bfloat16: Tolerance(5e-2, 1e-2),
    torch.complex128: Tolerance(1e-7, 1e-9),
    torch.complex64: Tolerance(1e-4, 1e-5),
}


def tolerance_for(dtype: torch.dtype, *, rtol: float | None = None, atol: float | None = None) -> Tolerance:
    """The tolerance for a dtype; ``rtol`` and ``atol`` replace the table's bounds; integers stay exact."""
    known = TOLERANCES.get(dtype)
    if known is None:
        return EXACT
    return Tolerance(known.rtol if rtol is None else rtol, known.atol if atol is None else atol)


def require_bounds(**bounds: float | None) -> None:
    """Accept bounds that are None or a number from 0 up.

    Raises:
        UsageError: one is negative, NaN or infinite; the message names it.
    """
    for name, bound in bounds.items():
        if bound is not None and not (math.isfinite(bound) and bound >= 0):
            raise UsageError(f"{name} is {bound}, which is no tolerance", hint="a number from 0 up")
