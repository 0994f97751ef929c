"""``full`` and its like, filled with a 0-d tensor: torch takes its number, which a capture does not know.

A tensor that has a gradient is no number for torch, in eager either.

Source: ``torch.full``, and how torch's argument parser takes a ``Scalar``, of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dy2st.calls.builtins.overloads import number_of
from dy2st.calls.torch_functions.registry import replaces
from dy2st.values.number_arguments import call_with_numbers


def _filled(function: Any, place: int) -> Callable[..., Any]:
    """What stands for ``function``, whose fill value is at ``place`` among the arguments."""

    def form(*args: Any, **kwargs: Any) -> Any:
        value = args[place] if len(args) > place else kwargs.get("fill_value")
        if not isinstance(value, torch.Tensor) or value.dim() != 0 or value.requires_grad or value.is_complex():
            return NotImplemented
        kind = bool if value.dtype is torch.bool else float if value.is_floating_point() else int
        named = {"fill_value": number_of(value, kind)}
        return call_with_numbers(function, args[:place] + args[place + 1 :], kwargs | named)

    return form


for _function, _place in ((torch.full, 1), (torch.full_like, 1), (torch.Tensor.new_full, 2)):
    replaces(_function)(_filled(_function, _place))
