"""How close two numbers must be, by dtype: the one table.

Two numbers agree if ``abs(actual - expected) <= atol + rtol * abs(expected)``, both taken in float64. The floats'
bounds lie ten to a thousand times above the round-off of the dtype: enough for another order of additions and another
``exp`` over some hundred steps, far too little for a wrong branch or a trip too many.

The roundings of a sum of n terms add up like a random walk, to about sqrt(n) units of round-off (Higham, "Accuracy and
Stability of Numerical Algorithms", 2002, section 2.8): the relative bounds allow for n of about a million in float32
and more in float64, four hundred in float16 and a hundred and fifty in bfloat16, whose kernels add up in float32.

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
import re
from collections.abc import Mapping

import torch

from dy2st.errors import UsageError
from dy2st.onnx.naming import result_name
from dy2st.report.model import Tolerance

# One bound for all outputs, or one for each by name; the one under the empty name is for the rest.
Bound = float | Mapping[str, float] | None

_KEY = re.compile(r"output(?:\['([^']+)'\]|\.(\w+))(.*)", re.DOTALL)

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


def bound_for(bound: Bound, *names: str) -> float | None:
    """The bound of an output that goes by these names: its own, else that under the empty name, else None."""
    if not isinstance(bound, Mapping):
        return bound
    known = (*names, *map(short_name, names), *(result_name(name) or "" for name in names))
    return next((bound[name] for name in known if name and name in bound), bound.get(""))


def short_name(output: str) -> str:
    """The key or field alone by which a result has an output: ``scores`` of ``output['scores']``; else the same."""
    found = _KEY.match(output)
    return output if found is None else f"{found[1] or found[2]}{found[3]}"


def require_bounds(**bounds: Bound) -> None:
    """Accept bounds that are None or a number from 0 up, or a dict of such numbers by output.

    Raises:
        UsageError: one is negative, NaN or infinite; the message names it.
    """
    for name, given in bounds.items():
        for output, bound in given.items() if isinstance(given, Mapping) else [("", given)]:
            if bound is not None and not (math.isfinite(bound) and bound >= 0):
                of = f" of {output}" if output else ""
                raise UsageError(f"{name}{of} is {bound}, which is no tolerance", hint="a number from 0 up")
