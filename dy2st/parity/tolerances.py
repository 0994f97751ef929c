"""How close two numbers must be, by dtype and by the model's largest sum: the one rule.

Two numbers agree if ``abs(actual - expected) <= atol + rtol * abs(expected)``, both taken in float64.

    dtype      unit round-off u   rtol             atol
    float64    1.1e-16            1e-10  (9e5 u)   1e-12
    float32    6.0e-8             1e-4   (1700 u)  1e-5
    float16    4.9e-4             1e-2   (20 u)    1e-3
    bfloat16   3.9e-3             5e-2   (13 u)    1e-2
    complex    as the real dtype of the parts
    int, bool  exact

The floats' bounds are multiples of the round-off: enough for another order of additions and another ``exp`` over some
hundred steps, far too little for a wrong branch or a trip too many; and in float64 too little for a constant that was
stored as float32.

The roundings of a sum of n terms add up like a random walk, to some sqrt(n) units of round-off (Higham, "Accuracy and
Stability of Numerical Algorithms", 2002, section 2.8). Where ``8 * sqrt(n)`` of them, n being the terms of the largest
sum that the model makes on this input, are more than the table's rtol, that takes its place, and atol grows with it: in
float32 from 44,000 terms on. Kernels for float16 and bfloat16 add up in float32, and so does the rule. The sums are
counted only where a value is beyond the table (:mod:`dy2st.parity.reductions`). A bound that the user has given is
never scaled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import torch

from dy2st.errors import UsageError
from dy2st.onnx.passes.value_names import result_name
from dy2st.report.model import Tolerance

# One bound for all outputs, or one for each by name; the one under the empty name is for the rest.
Bound = float | Mapping[str, float] | None

_KEY = re.compile(r"output(?:\['([^']+)'\]|\.(\w+))(.*)", re.DOTALL)

EXACT = Tolerance(0.0, 0.0)

TOLERANCES = {
    torch.float64: Tolerance(1e-10, 1e-12),
    torch.float32: Tolerance(1e-4, 1e-5),
    torch.float16: Tolerance(1e-2, 1e-3),
    torch.bfloat16: Tolerance(5e-2, 1e-2),
    torch.complex128: Tolerance(1e-10, 1e-12),
    torch.complex64: Tolerance(1e-4, 1e-5),
}


# Units of round-off for the square root of a sum's terms.
_UNITS = 8.0


def tolerance_for(
    dtype: torch.dtype, *, rtol: float | None = None, atol: float | None = None, terms: int = 1
) -> Tolerance:
    """The tolerance for a dtype in a model whose largest sum has so many terms; integers stay exact.

    ``rtol`` and ``atol`` replace the table's bounds, as they are.
    """
    known = TOLERANCES.get(dtype)
    if known is None:
        return EXACT
    adding = torch.finfo(torch.float64 if dtype in (torch.float64, torch.complex128) else torch.float32)
    factor = max(1.0, _UNITS * adding.eps / 2 * math.sqrt(terms) / known.rtol)
    return Tolerance(known.rtol * factor if rtol is None else rtol, known.atol * factor if atol is None else atol)


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
