"""Functions of numpy on staged numbers: predicates, and functions of floats that give a float.

What numpy computes of Python's floats, one by one, is what torch computes of float64. Integers and bools stay refused
where numpy would give integers or bools of its own, which are of no class of Python's.

Source: numpy reference, universal functions and array scalars.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from dy2st.calls import border
from dy2st.calls.builtins.overloads import stands_for
from dy2st.operators.export_session import current
from dy2st.staging.conditions import require
from dy2st.staging.loops.iterables import StagedIterable
from dy2st.staging.session import MODE
from dy2st.values.number import SYMBOLS, Number, number_kind, number_tensor
from dy2st.values.numpy_floats import NumpyFloats

Computing = Callable[..., torch.Tensor]


def _clip(value: torch.Tensor, least: torch.Tensor | None = None, most: torch.Tensor | None = None) -> torch.Tensor:
    value = value if least is None else torch.maximum(value, least)
    return value if most is None else torch.minimum(value, most)


def _round(value: torch.Tensor, decimals: int = 0) -> torch.Tensor:
    return torch.round(value, decimals=decimals)


def _of_one_name(names: str) -> dict[Any, Computing]:
    return {getattr(np, name): getattr(torch, name) for name in names.split()}


# These give a float of an integer, too.
OF_NUMBERS: dict[Any, Computing] = {
    **_of_one_name("sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh"),
    **_of_one_name("deg2rad rad2deg hypot copysign logaddexp"),
    np.arcsin: torch.asin,
    np.arccos: torch.acos,
    np.arctan: torch.atan,
    np.arcsinh: torch.asinh,
    np.arccosh: torch.acosh,
    np.arctanh: torch.atanh,
    np.rint: torch.round,
    np.fabs: torch.abs,
    np.radians: torch.deg2rad,
    np.degrees: torch.rad2deg,
    np.divide: torch.true_divide,
    np.float_power: torch.pow,
    np.arctan2: torch.atan2,
}
# These give a float if one of their arguments is one.
OF_FLOATS: dict[Any, Computing] = {
    **_of_one_name("floor ceil trunc square reciprocal add remainder fmod maximum minimum fmax fmin"),
    np.fix: torch.trunc,
    np.absolute: torch.abs,
    np.negative: torch.neg,
    np.positive: torch.clone,
    np.sign: lambda value: torch.where(value.isnan(), value, value.sign()),
    np.subtract: torch.sub,
    np.multiply: torch.mul,
    np.floor_divide: functools.partial(torch.div, rounding_mode="floor"),
    np.power: torch.pow,
    np.clip: _clip,
    np.round: _round,
    np.around: _round,
}


def _computing(original: Any, on_tensors: Computing, *, of_floats: bool) -> Callable[..., Any]:
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        kinds = [None if each is None else number_kind(each) for each in args]
        staged = any(isinstance(each, (Number, *SYMBOLS)) for each in args)
        given = [each for each in args if each is not None]
        wanted = (float,) if of_floats else (int, float)
        if not staged or kwargs or None in map(number_kind, given) or not any(kind in wanted for kind in kinds):
            args, kwargs = border.admitted(original, args, kwargs)
            return original(*args, **kwargs)
        current().part(NumpyFloats).any = True
        if on_tensors is _round and not isinstance(given[-1], (Number, *SYMBOLS)):
            return Number(_round(number_tensor(args[0]), *args[1:]), float)
        tensors = [None if each is None else number_tensor(each).to(torch.float64) for each in args]
        return Number(on_tensors(*tensors), float)

    return stand_in


for _functions, _of_floats in ((OF_NUMBERS, False), (OF_FLOATS, True)):
    for _original, _on_tensors in _functions.items():
        stands_for(_original)(_computing(_original, _on_tensors, of_floats=_of_floats))


@stands_for(np.arange)
def _arange(*args: Any, **kwargs: Any) -> Any:
    """``numpy.arange`` of floats some of which are staged: its elements, to be iterated over."""
    staged = any(isinstance(each, (Number, *SYMBOLS)) for each in args)
    bounds = [float(each) if isinstance(each, np.float64) else each for each in args]
    kinds = [number_kind(each) for each in bounds]
    if not staged or kwargs or len(args) not in (1, 2, 3) or None in kinds or float not in kinds:
        args, kwargs = border.admitted(np.arange, args, kwargs)
        return np.arange(*args, **kwargs)
    current().part(NumpyFloats).any = True
    bounds = [0.0, *bounds, 1.0] if len(args) == 1 else [*bounds, 1.0][:3]
    start, stop, step = (number_tensor(each).to(torch.float64) for each in bounds)
    steps = torch.ceil((stop - start) / step)
    require(Number(steps.isfinite(), bool), ValueError, "arange: cannot compute length")
    if MODE.capture is not None:
        steps = MODE.capture.guards.after(steps)  # no loop may begin that eager does not
    second = start + step

    def element(index: Any) -> Number:
        # numpy computes the first two, and the others by their difference
        at = number_tensor(index)
        return Number(torch.where(at == 1, second, start + at * (second - start)), float)

    return StagedIterable(Number(steps.clamp(min=0).to(torch.int64), int), element, "an array")


def _saying(original: Any, answer: Any) -> Callable[..., Any]:
    """A question that every number answers alike."""

    def stand_in(value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, (Number, *SYMBOLS)) and not args and not kwargs:
            return answer
        if not isinstance(value, torch.Tensor):
            border.admitted(original, (value, *args), kwargs)
        return original(value, *args, **kwargs)

    return stand_in


for _original, _answer in ((np.isscalar, True), (np.ndim, 0), (np.shape, ()), (np.size, 1)):
    stands_for(_original)(_saying(_original, _answer))
