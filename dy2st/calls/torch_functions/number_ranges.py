"""``full`` and ``linspace`` and their like, which take a 0-d tensor where they ask for a number.

Torch's own code needs its value. A capture gives them the tensor's number, which the graph knows; a tensor that has a
gradient is no fill value for torch, in eager either.

Source: how torch's argument parser takes a ``Scalar``, and ATen/native/RangeFactories.cpp, of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard, cast

import torch

from dy2st.calls.builtins.overloads import number_of
from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.values.number import symbolic
from dy2st.values.number_arguments import call_with_numbers


def _is_number(value: Any) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor) and value.dim() == 0 and not value.is_complex()


def _filled(function: Any, place: int) -> Callable[..., Any]:
    """What stands for ``function``, whose fill value is at ``place`` among the arguments."""

    def form(*args: Any, **kwargs: Any) -> Any:
        value = args[place] if len(args) > place else kwargs.get("fill_value")
        if not _is_number(value) or value.requires_grad:
            return NotImplemented
        kind = bool if value.dtype is torch.bool else float if value.is_floating_point() else int
        named = {"fill_value": number_of(value, kind)}
        return call_with_numbers(function, args[:place] + args[place + 1 :], kwargs | named)

    return form


for _function, _place in ((torch.full, 1), (torch.full_like, 1), (torch.Tensor.new_full, 2)):
    replaces(_function)(_filled(_function, _place))


@replaces("linspace")
def linspace(start: Any, end: Any, steps: Any = None, **options: Any) -> Any:
    """``torch.linspace``: from both ends to the middle, as torch computes it."""
    steps = _counted(steps)
    if ints(steps) and any(isinstance(each, torch.Tensor) and each.requires_grad for each in (start, end)):
        # Of a tensor it takes the number.
        first, last = (each.detach() if isinstance(each, torch.Tensor) else each for each in (start, end))
        return torch.linspace(first, last, steps, **options)
    return _spaced(start, end, steps, options, lambda exponents: exponents)


@replaces("logspace")
def logspace(start: Any, end: Any, steps: Any = None, base: Any = 10.0, **options: Any) -> Any:
    """``torch.logspace``: ``base`` to powers that are evenly spaced."""
    return _spaced(start, end, _counted(steps), options, lambda exponents: torch.pow(base, exponents))


def _counted(steps: Any) -> Any:
    """A number of steps; of a tensor its int."""
    counted = _is_number(steps) and not steps.is_floating_point() and steps.dtype is not torch.bool
    return symbolic(number_of(steps, int) if counted else steps)


def _spaced(start: Any, end: Any, steps: Any, options: Mapping[str, Any], form: Callable[[Any], Any]) -> Any:
    dtype = options.get("dtype") or torch.get_default_dtype()
    if ints(steps) or not isinstance(steps, torch.SymInt) or not dtype.is_floating_point or options.get("out"):
        return NotImplemented
    torch._check(steps >= 0)
    first, last = (_as_float(each, dtype) for each in (start, end))
    i: Any = torch.arange(cast("Any", steps), device=options.get("device"))
    step = (last - first) / torch.sym_max(steps - 1, 1)
    if not isinstance(step, torch.Tensor):
        step = torch.ops.aten.scalar_tensor.default(step, dtype=dtype)
    # Of one number, it is the first.
    early = (i < steps // 2) | (i == 0)
    return torch.where(early, form(first + step * i), form(last - step * (steps - 1 - i))).to(dtype)


def _as_float(end: Any, dtype: torch.dtype) -> Any:
    return end.detach().to(dtype) if isinstance(end, torch.Tensor) else end
