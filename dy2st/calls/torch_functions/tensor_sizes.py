"""Sizes that are given as tensors: ``x.view(2, torch.div(n, 2, rounding_mode="trunc"))``.

Eager takes a tensor with one element for the int that it holds. A trace has no values, so the size would be a symbol
without any meaning. Here it is the int where the tensor is one of constants, else the number of the graph.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.calls.builtins.overloads import item, known_int
from dy2st.staging.session import MODE
from dy2st.values.number_arguments import FACTORIES, SHAPED

# Methods of a tensor whose other arguments are sizes, numbers of elements or strides.
_SIZED = SHAPED | frozenset("expand repeat as_strided narrow".split())
# Functions of sizes alone. The others take numbers of other kinds as well.
_MADE = FACTORIES - frozenset("arange linspace randint".split())


def with_sizes(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of the torch function ``name``, in which a size is no tensor.

    Args:
        name: what the function is called; one that takes no sizes gets its arguments as they are.
        args: those that are given by position. A tensor among the sizes has the shape ``[]`` and an integer dtype;
            others are left to torch, which refuses them as eager does.
    """
    if MODE.capture is None or name not in _SIZED | _MADE:
        return args
    kept = 1 if name in _SIZED else 0
    return (*args[:kept], *map(_size, args[kept:]))


def _size(given: Any) -> Any:
    """A size, or several."""
    if isinstance(given, (list, tuple)) and any(isinstance(each, torch.Tensor) for each in given):
        return tuple(map(_size, given))
    given = known_int(given)
    one = isinstance(given, torch.Tensor) and given.dim() == 0 and not given.dtype.is_floating_point
    return item(given) if one and given.dtype is not torch.bool and not given.dtype.is_complex else given
