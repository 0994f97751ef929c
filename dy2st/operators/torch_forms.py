"""``torch.cond`` and ``torch.while_loop`` as the Python that they stand for, where converted code calls them.

Torch captures their functions with its compiler, which can't read converted code, and won't inside of a capture. As
Python they are converted like all other code: an arm may have conditions of its own, write to attributes, and close
over what it likes.

Source: ``torch.cond`` and ``torch.while_loop`` of torch 2.13.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from dy2st.operators.calls import EAGER_FORMS


def either(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: tuple[Any, ...] | list[Any] = (),
) -> Any:
    """``torch.cond``."""
    if pred:
        return true_fn(*operands)
    return false_fn(*operands)


def repeated(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...] | list[Any]
) -> tuple[Any, ...]:
    """``torch.while_loop``."""
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        carried = tuple(body_fn(*carried))
    return carried


# By their names in torch.
FORMS: dict[str, types.FunctionType] = {"cond": either, "while_loop": repeated}  # type: ignore[dict-item]


def use_forms() -> None:
    """Let converted code that runs eagerly call the forms, if torch has been imported; this imports no torch."""
    torch = sys.modules.get("torch")
    if torch is not None and not EAGER_FORMS:
        EAGER_FORMS.update({id(getattr(torch, name)): form for name, form in FORMS.items()})
