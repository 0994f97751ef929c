"""Functions that scale what they add by a number (``alpha``, ``value``, ``beta``), given one that is data.

Torch takes a tensor without dimensions for such a number, and asks it for its value. A graph multiplies by it.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.calls.torch_functions.registry import replaces
from dy2st.values.number import Number, scalar_operand


def _is_data(number: Any) -> bool:
    return isinstance(number, (torch.Tensor, Number))


def _times(tensor: Any, number: Any) -> Any:
    """``number * tensor``, which keeps the tensor's dtype."""
    if isinstance(number, torch.Tensor):
        number = number.detach().to(tensor.dtype if isinstance(tensor, torch.Tensor) else number.dtype)
    elif isinstance(number, Number) and isinstance(tensor, torch.Tensor):
        number = scalar_operand(number, tensor)
    return tensor * number


def _sum(name: str) -> None:
    function, in_place = getattr(torch, name), getattr(torch.Tensor, f"{name}_")

    @replaces(function, getattr(torch.Tensor, name))
    def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:  # noqa: A002 - torch's name
        if not _is_data(alpha) or out is not None:
            return NotImplemented
        return function(input, _times(other, alpha))

    @replaces(in_place)
    def add_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        return in_place(self, _times(other, alpha)) if _is_data(alpha) else NotImplemented


for _name in ("add", "sub", "subtract"):
    _sum(_name)


@replaces("addcmul")
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Any = None) -> Any:  # noqa: A002
    """``input + value * tensor1 * tensor2``."""
    return NotImplemented if not _is_data(value) or out is not None else input + _times(tensor1, value) * tensor2


@replaces("addcdiv")
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Any = None) -> Any:  # noqa: A002
    """``input + value * tensor1 / tensor2``."""
    return NotImplemented if not _is_data(value) or out is not None else input + _times(tensor1, value) / tensor2


@replaces(torch.Tensor.addcmul_)
def addcmul_(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """``addcmul`` in place."""
    return self.add_(_times(tensor1, value) * tensor2) if _is_data(value) else NotImplemented


@replaces(torch.Tensor.addcdiv_)
def addcdiv_(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """``addcdiv`` in place."""
    return self.add_(_times(tensor1, value) / tensor2) if _is_data(value) else NotImplemented


_PRODUCTS: dict[str, Any] = {"addmm": torch.mm, "addmv": torch.mv, "addr": torch.outer, "baddbmm": torch.bmm}


def _product(name: str) -> None:
    multiply = _PRODUCTS[name]

    @replaces(name)
    def form(input: Any, one: Any, other: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:  # noqa: A002
        if out is not None or not (_is_data(beta) or _is_data(alpha)):
            return NotImplemented
        return _times(input, beta) + _times(multiply(one, other), alpha)


for _name in _PRODUCTS:
    _product(_name)
