"""Whether a run converts a number to an integer that it has none for: NaN, infinity, or what is beyond its range.

C says nothing of what comes out then, and processors differ: of such an input eager is no judge. A conversion in Python
raises; one of a tensor is seen here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from dy2st.parity.inputs import InputSet
from dy2st.parity.stages import run_model

_CONVERTING = frozenset(("_to_copy", "to", "copy_", "copy"))


class Conversions(TorchDispatchMode):
    """Follows conversions to integers; ``undefined`` is whether one was of a number that has none."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.undefined: bool = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator."""
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in _CONVERTING and isinstance(result, torch.Tensor):
            given = [each for each in pytree.tree_leaves(args) if isinstance(each, torch.Tensor)]
            self.undefined = self.undefined or _has_no_integer(given[-1], result.dtype)
        return result


def _has_no_integer(value: torch.Tensor, dtype: torch.dtype) -> bool:
    if not value.is_floating_point() or dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return False
    limits = torch.iinfo(dtype)
    whole = value.double().trunc()
    fits = (whole >= float(limits.min)) & (whole < float(limits.max) + 1.0)
    return not bool(fits.all())


def converts_undefined(model: Any, inputs: InputSet) -> bool:
    """Whether eager, which ends on a set, makes an integer of a number that has none."""
    with Conversions() as conversions:
        try:
            run_model(model, model, inputs)
        except Exception:  # noqa: BLE001 - what eager rejects is judged elsewhere
            return False
    return bool(conversions.undefined)
