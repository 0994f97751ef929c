"""Functions and methods of tensors that give Python's values: ``item``, ``tolist``, ``torch.equal`` and their like."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import Any

import torch

# These register what they define; now, since torch.export will put other functions in place of some builtins.
from dy2st.calls.builtins.overloads import item, stands_for
from dy2st.calls.builtins.printing import text_method, write_method
from dy2st.calls.outside_world import array_of, constant_value
from dy2st.errors import DynamicLengthError, NumpyError, StagedNumberError
from dy2st.operators.logic import assertion
from dy2st.staging.conditions import both, condition, truth_number
from dy2st.staging.loops.iterables import has_dynamic_length
from dy2st.staging.session import MODE
from dy2st.tracing.grad_mode import gradient_mode, mode_of_managers
from dy2st.tracing.tracer import outside_the_trace
from dy2st.values.elements import Cell, Composite, Element
from dy2st.values.number import Number, number_tensor
from dy2st.values.stacked_list import StackedList


@stands_for(torch.equal)
def _equal(a: torch.Tensor, b: torch.Tensor) -> Any:
    if a.dim() != b.dim():
        return False
    same: Any = True
    for m, n in zip(a.shape, b.shape, strict=True):
        same = both(same, condition(m == n))
        if same is False:
            return False
    if isinstance(same, torch.Tensor):
        raise StagedNumberError("torch.equal() of tensors whose shapes may differ", hint="compare the shapes first")
    return truth_number((a == b).all())


@stands_for(torch.allclose)
def _allclose(a: torch.Tensor, b: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    return truth_number(torch.isclose(a, b, *args, **kwargs).all())


@stands_for(torch.is_grad_enabled, mode_of_managers)
def _is_grad_enabled() -> bool:
    mode = gradient_mode()
    return mode.enabled and (mode.ambient or mode.asked)


@stands_for(torch._assert)
def _assert(condition: Any, message: Any) -> None:
    """``torch._assert``, which packages call for an ``assert``."""
    if isinstance(condition, (torch.Tensor, torch.SymBool, Number)):
        assertion(condition)
    elif not condition:
        raise AssertionError(message)


@stands_for(torch.is_nonzero)
def _is_nonzero(value: torch.Tensor) -> Any:
    return truth_number(condition(value))


def _numpy(tensor: torch.Tensor, *, force: bool = False) -> Any:  # noqa: ARG001 - nothing here wants a gradient
    found = None if MODE.capture is None else array_of(MODE.capture, tensor)
    if found is None:
        raise NumpyError("numpy is used on a data-dependent tensor", hint="use the torch function of the same name")
    return found


# Of so many numbers a row is a list of them at most.
_MOST_NUMBERS = 64


def _listed(tensor: torch.Tensor) -> list[Any]:
    """``tolist()`` of a tensor whose length is known only when the graph runs: [n], or [n, ...] of static sizes."""
    sizes = tensor.shape[1:]
    if not all(isinstance(size, int) for size in sizes) or not 0 < sizes.numel() <= _MOST_NUMBERS:
        raise DynamicLengthError(
            "tolist() of a tensor of several dimensions whose length is known only when the graph runs",
            hint="keep it a tensor, or iterate over its rows with a for loop",
        )
    kind = bool if tensor.dtype is torch.bool else float if tensor.dtype.is_floating_point else int
    values = tensor.to(number_tensor(kind(0)).dtype).clone()
    columns = [values] if not sizes else list(values.flatten(1).unbind(1))
    made = [StackedList(columns, _of_numbers(Cell(values.dtype, 0, kind), tuple(sizes)))]
    return made if MODE.capture is None else MODE.capture.new(made)


def _of_numbers(cell: Cell, sizes: tuple[int, ...]) -> Element:
    """A number, or lists of lists of numbers."""
    if not sizes:
        return cell
    return Composite((_of_numbers(cell, sizes[1:]),) * sizes[0], list, (list, sizes[0]))


def _numbers(name: str, tensor: torch.Tensor) -> Any:
    """``tolist()`` or ``item()``: numbers of Python's where the values are those of constants."""
    known = None if MODE.capture is None else constant_value(MODE.capture, tensor)
    if known is None:
        return _tolist(tensor) if name == "tolist" else item(tensor)
    with outside_the_trace():
        made = getattr(known, name)()
    return made if MODE.capture is None or not isinstance(made, list) else MODE.capture.new(made)


def _tolist(tensor: torch.Tensor) -> Any:
    if tensor.dim() == 0:
        return item(tensor)
    if has_dynamic_length(tensor):
        return _listed(tensor)
    made = [_tolist(row) for row in tensor.unbind(0)]
    return made if MODE.capture is None else MODE.capture.new(made)


# Methods that give a bool of Python's.
_TELLING: dict[str, Callable[..., Any]] = {"equal": _equal, "allclose": _allclose, "is_nonzero": _is_nonzero}


def bound_stand_in(method: Any) -> Callable[..., Any] | None:
    """What stands for a bound method of a tensor, a text or a stream, or None."""
    owner = getattr(method, "__self__", None)
    if isinstance(owner, str) and method.__name__ in ("format", "format_map", "join"):
        return text_method(method)
    if isinstance(owner, io.TextIOWrapper) and method.__name__ == "write":
        return write_method(method)
    if isinstance(owner, torch.Tensor):
        name = getattr(method, "__name__", "")
        if name in ("item", "tolist"):
            return functools.partial(_numbers, name, owner)
        if name in _TELLING:
            return functools.partial(_TELLING[name], owner)
        if name == "numpy":
            return functools.partial(_numpy, owner)
    return None
