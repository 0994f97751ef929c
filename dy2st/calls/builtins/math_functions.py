"""``math`` and the builtins of numbers under a capture."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from dy2st.calls.builtins.overloads import STAND_INS, is_staged, number_of, stands_for
from dy2st.values.number import DTYPES, SYMBOLS, Number, number_tensor, one_element
from dy2st.values.python_errors import may_raise

# By the function, that of torch which computes it of tensors, and the type that it gives.
MATH: dict[Any, tuple[Callable[..., Any], type]] = {
    **{
        getattr(math, name): (getattr(torch, name), kind)
        for names, kind in (
            ("sqrt exp log log2 log10 log1p expm1 exp2 hypot sin cos tan asin acos atan atan2", float),
            ("sinh cosh tanh erf pow copysign fmod", float),
            ("floor ceil trunc", int),
            ("isnan isinf isfinite", bool),
        )
        for name in names.split()
    },
    math.degrees: (torch.rad2deg, float),
    math.radians: (torch.deg2rad, float),
    math.fabs: (torch.abs, float),
}
# Of a size they give what may be a size.
ROUNDING = (math.floor, math.ceil, math.trunc)


def _math(original: Any, on_tensor: Callable[..., Any], kind: type) -> Callable[..., Any]:
    def stand_in(*args: Any) -> Any:
        if not any(is_staged(a) for a in args):
            return original(*args)
        if original in ROUNDING and isinstance(args[0], SYMBOLS):
            return original(args[0])
        if kind is not bool:
            may_raise(ValueError, f"math.{original.__name__}()")
            may_raise(OverflowError, f"math.{original.__name__}()")
        tensors = [
            (one_element(a) if isinstance(a, torch.Tensor) else number_tensor(a)).to(torch.float64) for a in args
        ]
        if original is math.hypot and len(tensors) != 2:
            return Number(torch.stack(tensors).square().sum().sqrt(), float)
        if original is math.log and len(tensors) == 2:
            return Number(torch.log(tensors[0]) / torch.log(tensors[1]), float)
        return Number(on_tensor(*tensors).to(DTYPES[kind]), kind)

    return stand_in


for _original, (_on_tensor, _kind) in MATH.items():
    STAND_INS[_original] = _math(_original, _on_tensor, _kind)


@stands_for(divmod)
def _divmod(a: Any, b: Any) -> Any:
    return (a // b, a % b) if isinstance(a, SYMBOLS) or isinstance(b, SYMBOLS) else divmod(a, b)


stands_for(abs)(abs)


@stands_for(round)
def _round(value: Any, digits: Any = None) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.round(value) if digits is None else torch.round(value, decimals=digits)
    if isinstance(value, torch.SymFloat):
        value = Number(number_tensor(value), float)
    return round(value) if digits is None else round(value, digits)


@stands_for(operator.index)
def _index(value: Any) -> Any:
    if isinstance(value, Number) and value.kind is not float:
        return value if value.kind is int else Number(number_tensor(value).to(torch.int64), int)
    if isinstance(value, torch.Tensor) and not (value.dtype.is_floating_point or value.dtype.is_complex):
        return number_of(value, int)
    return value if isinstance(value, torch.SymInt) else operator.index(value)
