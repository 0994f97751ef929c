"""Functions that compare with a number or put one in places, if it is data.

The numbers are called ``min_val``, ``lambd``, ``delta``, ``beta``, ``rtol``, ``nan``, ``value`` and the like. Torch
asks a tensor without dimensions for its value there. A graph takes the tensor.

Source: the same functions of torch 2.13, ATen/native/cpu/Activation.cpp, BinaryOpsKernel.cpp and UnaryOpsKernel.cpp,
and ``isclose`` of ATen/native/TensorCompare.cpp; their derivatives at a threshold too.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from dy2st.calls.torch_functions.broadcasting import is_none_or_one
from dy2st.calls.torch_functions.losses import agree
from dy2st.calls.torch_functions.registry import replaces
from dy2st.calls.torch_functions.scaled_addends import as_operand, is_data
from dy2st.staging.conditions import require
from dy2st.values.number import Number

Tensor = torch.Tensor


def _is_other(tensor: Any, *numbers: Any) -> bool:
    """Whether torch's own function is called: no number is data, or the tensor is not of floats."""
    return not any(map(is_data, numbers)) or not isinstance(tensor, Tensor) or not tensor.is_floating_point()


@replaces("nan_to_num")
def nan_to_num(input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None, *, out: Any = None) -> Any:  # noqa: A002
    """NaN and the infinities replaced; by zero and the dtype's greatest and least numbers, if not given."""
    if _is_other(input, nan, posinf, neginf) or out is not None:
        return NotImplemented
    ends = torch.finfo(input.dtype)
    given = [(nan, 0.0), (posinf, ends.max), (neginf, ends.min)]
    by = [as_operand(default if number is None else number, input) for number, default in given]
    places = input.isnan(), input == math.inf, input == -math.inf
    result = input
    for place, number in zip(places, by, strict=True):
        result = torch.where(place, number, result)
    return result


@replaces(Tensor.nan_to_num_)
def nan_to_num_(self: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    """``nan_to_num`` in place."""
    made = nan_to_num(self, nan, posinf, neginf)
    return made if made is NotImplemented else self.copy_(made)


@replaces(functional.hardtanh)
def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Any:  # noqa: A002
    """Clipped to an interval; without a gradient at its ends."""
    if _is_other(input, min_val, max_val):
        return NotImplemented
    low, high = as_operand(min_val, input), as_operand(max_val, input)
    require(torch.as_tensor(low <= high), ValueError, "min_val cannot be greater than max_val")
    made = torch.where(input <= low, low, torch.where(input >= high, high, input))
    return input.copy_(made) if inplace else made


@replaces(functional.hardtanh_)
def hardtanh_(input: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Any:  # noqa: A002
    """``hardtanh`` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


@replaces(functional.softshrink)
def softshrink(input: Any, lambd: Any = 0.5) -> Any:  # noqa: A002
    """Moved towards zero by ``lambd``."""
    if _is_other(input, lambd):
        return NotImplemented
    by = as_operand(lambd, input)
    require(by >= 0, RuntimeError, "lambda must not be negative")
    inside = torch.where(input.isnan(), input, 0.0)
    return torch.where(input > by, input - by, torch.where(input < -by, input + by, inside))


def _reduced(losses: Tensor, reduction: str) -> Any:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


@replaces(functional.huber_loss)
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: Any = 1.0, weight: Any = None) -> Any:  # noqa: A002
    """Half the square up to ``delta``, and a line beyond."""
    agree(input, target)
    if _is_other(input, delta):
        return NotImplemented
    by = as_operand(delta, input)
    require(by > 0, RuntimeError, "huber_loss does not support non-positive values for delta.")
    apart = (input - target).abs()
    losses = torch.where(apart < by, 0.5 * apart * apart, by * (apart - 0.5 * by))
    return _reduced(losses if weight is None else losses * weight, reduction)


@replaces(functional.smooth_l1_loss)
def smooth_l1_loss(
    input: Any,  # noqa: A002
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: Any = 1.0,
) -> Any:
    """As ``huber_loss`` over ``beta``, which may be zero."""
    agree(input, target)
    if _is_other(input, beta) or size_average is not None or reduce is not None:
        return NotImplemented
    by = as_operand(beta, input)
    require(by >= 0, RuntimeError, "smooth_l1_loss does not support negative values for beta.")
    apart = (input - target).abs()
    near = 0.5 * apart * apart / torch.where(by == 0, 1.0, by)
    return _reduced(torch.where(apart < by, near, apart - 0.5 * by), reduction)


@replaces("isclose")
def isclose(input: Any, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:  # noqa: A002
    """Whether two tensors differ by no more than ``atol + rtol * |other|``."""
    if all(isinstance(each, torch.Tensor) and each.dtype is torch.bool for each in (input, other)):
        default = torch.get_default_dtype()
        return torch.isclose(input.to(default), other.to(default), rtol, atol, equal_nan)
    if _is_other(input, rtol, atol):
        return NotImplemented
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    share, least = as_operand(rtol, other), as_operand(atol, other)
    for number in (share, least):
        require(torch.as_tensor(number >= 0), RuntimeError, "rtol and atol must be greater than or equal to zero")
    apart = (input - other).abs()
    close = (input == other) | (apart.isfinite() & (apart <= least + (share * other).abs()))
    return close | (input.isnan() & other.isnan()) if equal_nan else close


# What ``scatter`` calls the reductions of ``scatter_reduce``.
_REDUCTIONS = {"add": "sum", "multiply": "prod"}


@replaces("scatter")
def scatter(
    input: Any,  # noqa: A002
    dim: Any,
    index: Any,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
    out: Any = None,
) -> Any:
    """A number at places along a dimension: a tensor of such numbers is. With ``reduce``: a ``scatter_reduce``."""
    number = src if value is None else value
    if out is not None or (reduce is not None and reduce not in _REDUCTIONS):
        return NotImplemented
    if isinstance(number, Number):
        number = number.tensor.to(input.dtype).expand(index.shape)
    elif reduce is not None and not isinstance(number, torch.Tensor):
        number = torch.full_like(index, number, dtype=input.dtype)
    elif reduce is None:
        return NotImplemented
    if reduce is None:
        return input.scatter(dim, index, number)
    return input.scatter_reduce(dim, index, number, _REDUCTIONS[reduce])


@replaces(Tensor.scatter_)
def scatter_(self: Any, dim: Any, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None) -> Any:
    """``scatter`` in place."""
    made = scatter(self, dim, index, src, value=value, reduce=reduce)
    return made if made is NotImplemented else self.copy_(made)


@replaces("masked_fill", sized=True)
def masked_fill(input: Any, mask: Any, value: Any) -> Any:  # noqa: A002
    """``Tensor.masked_fill`` of sizes that are known only when the graph runs: each is broadcast to the other."""
    if not isinstance(input, Tensor) or not isinstance(mask, Tensor) or mask.dtype is not torch.bool:
        return NotImplemented
    if not isinstance(value, (bool, int, float)) or torch.result_type(input, value) is not input.dtype:
        return NotImplemented
    if any(map(is_none_or_one, (*input.shape, *mask.shape))):
        return NotImplemented
    return torch.where(mask, value, input)
