"""Truth values under a capture: Python where Python can know them, else a 0-d bool tensor.

Beside them what rests on truth values alone: comparisons of shapes, size by size, and what eager demands of
data-dependent values where it would raise (the graph fails there too).
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.errors import ConditionShapeError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.cases import maybe_absent
from dy2st.staging.session import MODE
from dy2st.staging.users_code import special
from dy2st.tracing.tracer import known_true
from dy2st.values.number import Number, number_tensor, one_element
from dy2st.values.python_errors import may_raise
from dy2st.values.stacked_list import has_rows, row_list
from dy2st.values.tagged_union import TaggedUnion, distributed
from dy2st.values.undefined import UNSET, Undefined


def condition(value: Any) -> bool | torch.Tensor:
    """``value`` as a Python bool if that is known, else as a 0-d bool tensor (traced)."""
    if isinstance(value, torch.Tensor):
        if isinstance(value.numel(), int) and value.numel() != 1:
            raise ConditionShapeError(
                f"a tensor of shape {list(value.shape)} is used as a condition; eager PyTorch refuses it too",
                hint="reduce it to one value with .any() or .all()",
            )
        flat = value if value.dim() == 0 else one_element(value)
        return flat if flat.dtype is torch.bool else flat != 0
    if isinstance(value, Number):
        return value.tensor if value.kind is bool else value.tensor != 0
    if isinstance(value, torch.SymBool):
        if known_true(value):
            return True
        if known_true(torch.sym_not(value)):
            return False
        return _noted(number_tensor(value), (value,), (torch.sym_not(value),))
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return condition(value != 0)
    if isinstance(value, Undefined):
        return condition(value.truth())
    if isinstance(value, TaggedUnion):
        return condition(distributed(_truth, value))
    return _filled(value)


def _filled(value: Any) -> bool | torch.Tensor:
    """The truth of a container, or of an object that knows its own."""
    if has_rows(value):
        return condition(row_list(value).length >= 1)
    if isinstance(value, dict) and value and all(maybe_absent(v) for v in value.values()):
        return _any_there(value)
    for name in ("__bool__", "__len__"):
        method = special(value, name)
        if method is not None:
            return condition(method())
    return bool(value)


def _any_there(owner: dict[Any, Any]) -> bool | torch.Tensor:
    """Whether one of the keys is there, of which none is on all paths."""
    assert MODE.capture is not None
    found: bool | torch.Tensor = False
    for value in owner.values():
        found = either(found, condition(MODE.capture.case_verdict(value, lambda case: case is not UNSET)))
    return found


def _noted(tensor: torch.Tensor, if_true: tuple[Any, ...], if_false: tuple[Any, ...]) -> torch.Tensor:
    """A truth value, with what it says of sizes."""
    return tensor if MODE.capture is None else MODE.capture.tracing.note_test(tensor, if_true, if_false)


def _says(tensor: Any, *, value: bool) -> tuple[Any, ...]:
    return () if MODE.capture is None else MODE.capture.tracing.said_by(tensor, value=value)


def _truth(value: Any) -> Any:
    return truth_number(condition(value))


def truth_number(value: bool | torch.Tensor) -> Any:
    """A condition as the Python bool or staged bool that the user's code goes on with."""
    return Number(value, bool) if isinstance(value, torch.Tensor) else value


def either(a: Any, b: Any) -> Any:
    """``a or b`` of two conditions, both already known to be safe to evaluate."""
    if a is True or b is True:
        return True
    if a is False:
        return b
    if b is False:
        return a
    return _noted(torch.logical_or(a, b), (), _says(a, value=False) + _says(b, value=False))


def both(a: Any, b: Any) -> Any:
    """``a and b`` of two conditions, both already known to be safe to evaluate."""
    if a is False or b is False:
        return False
    if a is True:
        return b
    if b is True:
        return a
    return _noted(torch.logical_and(a, b), _says(a, value=True) + _says(b, value=True), ())


def negated(a: Any) -> Any:
    """``not a`` of a condition."""
    if isinstance(a, bool):
        return not a
    return _noted(torch.logical_not(a), _says(a, value=False), _says(a, value=True))


def require(
    test: Any, error: type[Exception] = IndexError, what: str = "index out of range, or another number of pieces"
) -> None:
    """Eager raises ``error(what)`` unless ``test``; so does the graph."""
    decided = condition(test)
    if decided is True or MODE.capture is None:
        return
    if decided is False:
        raise error(what)
    may_raise(error, "this index, or number of pieces," if error is IndexError else "this number")
    MODE.capture.guards.require(decided, location_of(users_frame()), always=True)


def demand(test: Any) -> None:
    """As ``require``; what follows is traced with the knowledge that it holds."""
    require(test)
    if MODE.capture is not None:
        MODE.capture.tracing.assume(test)
