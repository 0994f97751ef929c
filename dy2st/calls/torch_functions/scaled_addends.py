"""Functions that scale what they add by a number (``alpha``, ``value``, ``beta``), given one that is data.

Torch takes a tensor without dimensions for such a number, and asks it for its value. A graph multiplies by it.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.calls.torch_functions.registry import replaces
from dy2st.values.number import Number, scalar_operand


def is_data(number: Any) -> bool:
    """Whether a number is known only when the graph runs."""
    return isinstance(number, (torch.Tensor, Number))


def as_operand(number: Any, beside: Any) -> Any:
    """A number as an operand beside a tensor, whose dtype it takes."""
    if isinstance(number, torch.Tensor):
        return number.detach().to(beside.dtype if isinstance(beside, torch.Tensor) else number.dtype)
    return scalar_operand(number, beside) if isinstance(number, Number) and isinstance(beside, torch.Tensor) else number


def _times(tensor: Any, number: Any) -> Any:
    """``number * tensor``, which keeps the tensor's dtype."""
    return tensor * as_operand(number, tensor)


def _sum(name: str) -> None:
    function, in_place = getattr(torch, name), getattr(torch.Tensor, f"{name}_")

    @replaces(function, getattr(torch.Tensor, name))
    def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:  # noqa: A002 - torch's name
        if not is_data(alpha) or out is not None:
            return NotImplemented
        return function(input, _times(other, alpha))

    @replaces(in_place)
    def add_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        return in_place(self, _times(other, alpha)) if is_data(alpha) else NotImplemented


for _name in ("add", "sub", "subtract"):
    _sum(_name)


@replaces("addcmul")
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Any = None) -> Any:  # noqa: A002
    """``input + value * tensor1 * tensor2``."""
    return NotImplemented if not is_data(value) or out is not None else input + _times(tensor1, value) * tensor2


@replaces("addcdiv")
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Any = None) -> Any:  # noqa: A002
    """``input + value * tensor1 / tensor2``."""
    return NotImplemented if not is_data(value) or out is not None else input + _times(tensor1, value) / tensor2


@replaces(torch.Tensor.addcmul_)
def addcmul_(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """``addcmul`` in place."""
    return self.add_(_times(tensor1, value) * tensor2) if is_data(value) else NotImplemented


@replaces(torch.Tensor.addcdiv_)
def addcdiv_(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """``addcdiv`` in place."""
    return self.add_(_times(tensor1, value) / tensor2) if is_data(value) else NotImplemented


@replaces("index_add")
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1, out: Any = None) -> Any:  # noqa: A002
    """``input`` with ``alpha * source`` added at places along a dimension."""
    if not is_data(alpha) or out is not None:
        return NotImplemented
    return torch.index_add(input, dim, index, _times(source, alpha))


@replaces(torch.Tensor.index_add_)
def index_add_(self: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """``index_add`` in place."""
    return self.index_add_(dim, index, _times(source, alpha)) if is_data(alpha) else NotImplemented


_PRODUCTS: dict[str, Any] = {"addmm": torch.mm, "addmv": torch.mv, "addr": torch.outer, "baddbmm": torch.bmm}
_PRODUCTS["addbmm"] = lambda one, other: torch.bmm(one, other).sum(0)


def _product(name: str) -> None:
    multiply = _PRODUCTS[name]

    @replaces(name)
    def form(input: Any, one: Any, other: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:  # noqa: A002
        if out is not None or not (is_data(beta) or is_data(alpha)):
            return NotImplemented
        return _times(input, beta) + _times(multiply(one, other), alpha)


for _name in _PRODUCTS:
    _product(_name)
