"""``torch.cond`` and ``torch.while_loop`` as the Python that they stand for, where converted code calls them.

Torch captures their functions with its compiler, which can't read converted code, and won't inside of a capture. As
Python they are converted like all other code: an arm may have conditions of its own, write to attributes, and close
over what it likes.

Source: ``torch.cond`` and ``torch.while_loop`` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

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


FORMS: dict[Any, Any] = {torch.cond: either, torch.while_loop: repeated}
EAGER_FORMS |= {id(function): form for function, form in FORMS.items()}
