"""``torch.Tensor(list)`` and its kin, the constructors that came before ``torch.tensor``: as that, in their own dtype.

They are written in C and look for no ``__torch_function__``, so nothing else sees what stands in the list.
Source: https://docs.pytorch.org/docs/stable/tensors.html, "torch.Tensor is an alias for the default tensor type".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.calls.builtins.overloads import stands_for
from dy2st.values.stacked_list import StackedList
from dy2st.values.tensor_literals import SEQUENCES, tensor_of

# None is the default dtype.
_CLASSES: dict[Any, torch.dtype | None] = {
    torch.Tensor: None,
    torch.FloatTensor: torch.float32,
    torch.DoubleTensor: torch.float64,
    torch.HalfTensor: torch.float16,
    torch.BFloat16Tensor: torch.bfloat16,
    torch.BoolTensor: torch.bool,
    torch.ByteTensor: torch.uint8,
    torch.CharTensor: torch.int8,
    torch.ShortTensor: torch.int16,
    torch.IntTensor: torch.int32,
    torch.LongTensor: torch.int64,
}


def _constructor(original: Any, dtype: torch.dtype | None) -> Callable[..., Any]:
    def constructor(*args: Any, **kwargs: Any) -> Any:
        data = args[0] if len(args) == 1 and not kwargs else None
        if isinstance(data, (StackedList, *SEQUENCES)) and not isinstance(data, torch.Size) and _is_staged(data):
            return tensor_of(data, dtype or torch.get_default_dtype())
        return original(*args, **kwargs)

    return constructor


def _is_staged(data: Any) -> bool:
    """Whether anything in a list is known only when the graph runs."""
    if isinstance(data, StackedList):
        return True
    leaves = pytree.tree_leaves(data, is_leaf=lambda each: isinstance(each, StackedList))
    return not all(isinstance(leaf, (bool, int, float)) for leaf in leaves)


for _class, _dtype in _CLASSES.items():
    stands_for(_class)(_constructor(_class, _dtype))
