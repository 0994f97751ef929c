"""What sizes and their comparisons are to Python: ints and bools (True is 1), whose texts are data-dependent."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensor

from dy2st.errors import StagedNumberError
from dy2st.source.user_frames import is_users_frame
from dy2st.tracing.replaced import replaced
from dy2st.values.extensions import note_reading
from dy2st.values.number import SYMBOLS, Number, number_tensor
from dy2st.values.python_errors import may_divide_by_zero
from dy2st.values.staged_text import asked_by_the_user, unknown_part

Binary = Callable[[Any, Any], Any]


def as_python_numbers() -> AbstractContextManager[None]:
    """Operators of symbols give meanwhile what they give for Python's ints and bools."""
    return replaced((kind, name, method) for kind in SYMBOLS for name, method in _methods(kind).items())


def _methods(kind: type) -> dict[str, Any]:
    """The methods of a class of symbols that differ from torch's."""
    found: dict[str, Any]
    if kind is torch.SymBool:
        found = FOR_NUMPY | {name: _of_bool(name, vars(kind).get(name)) for name in OPERATORS}
        return found | {f"__{name}__": _unary(func) for name, func in UNARY.items()} | {"__round__": _rounded}
    found = FOR_NUMPY | {name: _of_number(name, vars(kind)[name]) for name in OPERATORS if name in vars(kind)}
    if kind is torch.SymInt:
        found |= {name: _of_bits(name) for name in OPERATORS if name in BITS}
        found |= {"__invert__": _unary(UNARY["invert"]), "__round__": _rounded}
    if kind is torch.SymFloat:
        found["is_integer"] = lambda value: value // 1 == value
    return found


def _no_array(*_args: Any, **_kwargs: Any) -> Any:
    raise StagedNumberError(
        "a number that is known only when the graph runs is used as an array of numpy's",
        hint="compute with Python's operators or torch functions",
    )


# numpy leaves operators to these classes.
FOR_NUMPY: dict[str, Any] = {"__array_ufunc__": None, "__array__": _no_array}


# ---- bools as ints


def _as_int(value: Any) -> Any:
    """A bool as 0 or 1; any other value itself."""
    if isinstance(value, torch.SymBool):
        return torch.sym_ite(value, 1, 0)
    return int(value) if isinstance(value, bool) else value


def _of_number(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    compares = name.strip("_") in COMPARISONS
    plain = name.strip("_").removeprefix("r" if name in REFLECTED else "")

    def method(self: Any, other: Any, *more: Any) -> Any:
        other = _as_int(other) if isinstance(other, torch.SymBool) else other
        if compares and _holds_bool(self, other) and is_users_frame(sys._getframe(1)):
            # sympy takes a test of tests apart, and may not come to an end. torch's own code asks for a bool.
            return OPERATORS[name](_staged(self), other)
        may_divide_by_zero(plain, self if name in REFLECTED else other)
        return original(self, other, *more)

    return method


def _holds_bool(*values: Any) -> bool:
    """Whether one of these was made with a symbolic bool that counts as an int."""
    symbols = (value for value in values if isinstance(value, (torch.SymInt, torch.SymFloat)))
    return any(value.node.expr.has(sympy.Piecewise) for value in symbols)


def _of_bool(name: str, original: Binary | None) -> Binary:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float, *SYMBOLS)):
            return NotImplemented
        if isinstance(other, (bool, torch.SymBool)):
            if original is not None and name in ("__eq__", "__and__", "__or__", "__rand__", "__ror__"):
                return original(self, other)
            if name in ("__ne__", "__xor__", "__rxor__"):
                return _negated(self == other)
        elif name in ("__eq__", "__ne__") and isinstance(other, (int, float)):
            return _beside_constant(self, other, equal=name == "__eq__")
        first, second = (other, self) if name in REFLECTED else (self, other)
        return OPERATORS[name](_as_int(first), _as_int(second))

    return method


def _beside_constant(value: Any, constant: float, *, equal: bool) -> Any:
    if constant not in (0, 1):
        return not equal
    return value if (constant == 1) is equal else _negated(value)


def _negated(value: Any) -> Any:
    return torch.sym_not(value) if isinstance(value, torch.SymBool) else not value


def _unary(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: func(_as_int(value))


def _rounded(value: Any, digits: Any = None) -> Any:
    return _as_int(value) if digits is None or digits >= 0 else round(_staged(_as_int(value)), digits)


# ---- bits


def _of_bits(name: str) -> Binary:
    def method(self: Any, other: Any) -> Any:
        other = _as_int(other)
        if not isinstance(other, (int, torch.SymInt)):
            return NotImplemented
        first, second = (other, self) if name in REFLECTED else (self, other)
        return BITS[name](first, second)

    return method


def _shifted_left(value: Any, places: Any) -> Any:
    return value * 2**places


def _shifted_right(value: Any, places: Any) -> Any:
    return value // 2**places


def _both(a: Any, b: Any) -> Any:
    for value, mask in ((a, b), (b, a)):
        if isinstance(mask, int) and mask >= 0 and not mask & (mask + 1):
            return value % (mask + 1)
        if isinstance(mask, int) and mask < 0 and not -mask & (-mask - 1):
            return value - value % -mask
    return _staged(a) & b


def _staged(value: Any) -> Number:
    return Number(number_tensor(value), float if isinstance(value, torch.SymFloat) else int)


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor")
REFLECTED: dict[str, Binary] = {f"__r{name.strip('_')}__": getattr(operator, name) for name in ARITHMETIC}
OPERATORS: dict[str, Binary] = {
    **{f"__{name.strip('_')}__": getattr(operator, name) for name in (*COMPARISONS, *ARITHMETIC)},
    **REFLECTED,
}
BITS: dict[str, Binary] = {
    f"__{reflected}{name}__": func
    for reflected in ("", "r")
    for name, func in {
        "lshift": _shifted_left,
        "rshift": _shifted_right,
        "and": _both,
        "or": lambda a, b: _staged(a) | b,
        "xor": lambda a, b: _staged(a) ^ b,
    }.items()
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": operator.abs,
    "invert": lambda number: -number - 1,
    "floor": operator.pos,
    "ceil": operator.pos,
    "trunc": operator.pos,
}


# ---- texts

METHODS = ("__repr__", "__str__", "__format__")
_MAKES: dict[str, Callable[..., str]] = {"__repr__": repr, "__str__": str, "__format__": format}


def _told_of_tensor(native: Callable[..., str]) -> Callable[..., str]:
    makes = _MAKES[native.__name__]

    def told(self: Any, *given: Any, **named: Any) -> str:
        note_reading("__str__")
        return unknown_part("tensor", makes, self, *given) if asked_by_the_user() else native(self, *given, **named)

    return told


def _told(native: Callable[..., str], kind: str) -> Callable[..., str]:
    makes = _MAKES[native.__name__]

    def told(self: Any, *spec: str) -> str:
        note_reading("__str__")
        if not isinstance(self.node.maybe_as_int(), int) and asked_by_the_user():
            return unknown_part(kind, makes, self, *spec)
        return native(self, *spec)

    return told


def unknown_texts() -> AbstractContextManager[None]:
    """In texts of the user's, a dynamic size or a tensor stands as what it is: unknown.

    Torch's symbol would be taken for one, and so would the text of what torch traces with.
    """
    kinds: list[tuple[type, str]] = [(torch.SymInt, "int"), (torch.SymFloat, "float"), (torch.SymBool, "bool")]
    sizes = [(owner, name, _told(getattr(owner, name), kind)) for owner, kind in kinds for name in METHODS]
    tensors = [(FakeTensor, name, _told_of_tensor(getattr(FakeTensor, name))) for name in METHODS]
    return replaced([*sizes, *tensors])
