"""``copy.deepcopy`` under a capture: tensors are cloned, and what is made is known to be new.

Source: Python library ``copy``.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from dy2st.calls.builtins.overloads import stands_for
from dy2st.errors import AliasError
from dy2st.staging.session import MODE
from dy2st.tracing.subgraph import storage_key
from dy2st.values.journal import CONTAINERS


@stands_for(copy.deepcopy)
def _deepcopy(value: Any, memo: dict[int, Any] | None = None) -> Any:
    memo = {} if memo is None else memo
    before = set(memo)
    made = copy.deepcopy(value, memo)
    if MODE.capture is not None:
        for identity, each in memo.items():
            # copy keeps a list of what it has copied beside the copies.
            is_copy = identity not in before and identity != id(memo)
            if is_copy and (isinstance(each, CONTAINERS) or _is_object(each)):
                MODE.capture.new(each)
    return made


def copied(tensor: torch.Tensor, memo: dict[Any, Any]) -> Any:
    """``tensor.__deepcopy__(memo)``; the copies of two views of one memory would be such views in eager."""
    made = tensor.clone()
    first = memo.setdefault(("storage", storage_key(tensor)), made)
    if first is not made:
        raise AliasError(
            "two tensors that share memory are copied by one deepcopy()",
            hint="copy them one by one, or clone() one of them before",
        )
    memo[id(tensor)] = made
    return made


def _is_object(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, (torch.Tensor, type))
