"""What stands for Python's builtins and ``math`` under a capture, where an argument is a tensor or a staged number."""

from __future__ import annotations

import builtins
import collections
import functools
import logging
import math
import operator
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import (
    DifferentTypesError,
    DynamicLengthError,
    NumpyError,
    StagedNumberError,
)
from dy2st.graph.grad_mode import GRADIENTS, mode_of_managers
from dy2st.graph.numbers import DTYPES, Number, cast, number_kind, number_tensor, promoted_dtype
from dy2st.graph.one_of import OneOf, distributed
from dy2st.graph.poison import UNSET, Poison
from dy2st.graph.rows import Rows, has_rows, row_list
from dy2st.graph.texts import UNKNOWN, characters, is_unknown, text
from dy2st.operators.cases import maybe_absent
from dy2st.operators.conditions import both, condition, either, truth_number
from dy2st.operators.iterables import (
    StagedIterable,
    as_iterable,
    has_dynamic_length,
    staged_enumerate,
    staged_range,
    staged_reversed,
    staged_zip,
)
from dy2st.operators.mode import MODE

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
STAND_INS: dict[Any, Callable[..., Any]] = {}


def elements(values: Any) -> Any:
    """A generator expression as the list of its elements; anything else as it is."""
    if isinstance(values, types.GeneratorType) and MODE.capture is not None:
        MODE.capture.advances.note(values)
        return MODE.capture.collected(values)
    return values if MODE.capture is None else MODE.capture.advances.watched(values)


def is_staged(value: Any) -> bool:
    """Whether a value is known only when the graph runs."""
    return isinstance(value, (torch.Tensor, Number, OneOf, *SYMBOLS))


def stands_for(*originals: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a stand-in."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for original in originals:
            STAND_INS[original] = function
        return function

    return register


def number_of(tensor: torch.Tensor, kind: type) -> Any:
    """``int(t)``, ``float(t)``, ``bool(t)`` of a tensor with one element."""
    if isinstance(tensor.numel(), int) and tensor.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    # A number is no alias of the tensor that it was read from.
    flat = tensor.reshape(()).clone()
    if kind is bool:
        return Number(flat if flat.dtype is torch.bool else flat != 0, bool)
    if kind is int and flat.dtype.is_floating_point:
        flat = torch.trunc(flat)
    return Number(cast(flat, DTYPES[kind]), kind)


def item(tensor: torch.Tensor) -> Any:
    """``t.item()``: the Python number that its dtype gives."""
    if tensor.dtype is torch.bool:
        return number_of(tensor, bool)
    return number_of(tensor, float if tensor.dtype.is_floating_point else int)


@stands_for(len)
def _len(value: Any) -> Any:
    if isinstance(value, OneOf):
        return distributed(_len, value)
    if isinstance(value, torch.Tensor):
        if value.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return value.shape[0]
    if has_rows(value):
        return sum(v.length if isinstance(v, Rows) else 1 for v in value)
    if isinstance(value, StagedIterable):
        return value.length
    if isinstance(value, dict) and any(maybe_absent(v) for v in value.values()):
        from dy2st.operators.distribution import verdict

        there = [v for v in value.values() if maybe_absent(v)]
        counts = [verdict(v, lambda case: case is not UNSET) for v in there]
        return sum(counts, len(value) - len(there))
    return len(text(value))


# Defined before ``knows_cases``: it tells the keys of a dict that are there on some paths only.
_len.takes_cases = True  # type: ignore[attr-defined]


@stands_for(int)
def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and is_staged(args[0]):
        value = args[0]
        if isinstance(value, torch.Tensor):
            return number_of(value, int)
        if isinstance(value, torch.SymInt) or (isinstance(value, Number) and value.kind is int):
            return value
        return number_of(number_tensor(value), int)
    return int(*map(characters, args), **kwargs)


@stands_for(float)
def _float(*args: Any) -> Any:
    if args and is_staged(args[0]):
        return number_of(args[0] if isinstance(args[0], torch.Tensor) else number_tensor(args[0]), float)
    return float(*map(characters, args))


@stands_for(bool)
def _bool(*args: Any) -> Any:
    return truth_number(condition(*args)) if args else False


_bool.takes_cases = True  # type: ignore[attr-defined]


@stands_for(range)
def _range(*args: Any) -> Any:
    return staged_range(*args) if any(is_staged(a) for a in args) else range(*args)


@stands_for(enumerate)
def _enumerate(iterable: Any, start: Any = 0) -> Any:
    found = staged_enumerate(iterable, start)
    return enumerate(iterable, start) if found is None else found


@stands_for(zip)
def _zip(*iterables: Any, **kwargs: Any) -> Any:
    found = staged_zip(*iterables)
    return zip(*iterables, **kwargs) if found is None else found  # noqa: B905  # kwargs may say it


@stands_for(reversed)
def _reversed(value: Any) -> Any:
    found = staged_reversed(value)
    return reversed(value) if found is None else found


def knows_cases(function: Callable[..., Any]) -> Callable[..., Any]:
    """A stand-in that takes a value of one of several kinds as it is."""
    function.takes_cases = True  # type: ignore[attr-defined]
    return function


@stands_for(hasattr)
@knows_cases
def _hasattr(owner: Any, name: str) -> Any:
    if isinstance(owner, OneOf):
        return case_verdict(owner, lambda case: _hasattr(case, name))
    value = getattr(owner, name, UNSET)
    if isinstance(value, OneOf):
        return case_verdict(value, lambda case: case is not UNSET)
    return value is not UNSET


@stands_for(callable)
@knows_cases
def _callable(value: Any) -> Any:
    return case_verdict(value, callable) if isinstance(value, OneOf) else callable(value)


def case_verdict(value: OneOf, test: Callable[[Any], Any]) -> Any:
    """See ``distribution.verdict``, which imports what imports this module."""
    from dy2st.operators.distribution import verdict

    return verdict(value, test)


@stands_for(isinstance)
@knows_cases
def _isinstance(value: Any, kinds: Any) -> Any:
    if isinstance(value, Poison):
        value.refuse()
    if isinstance(value, OneOf):
        return case_verdict(value, lambda case: _isinstance(case, kinds))
    kind = number_kind(value) if isinstance(value, (Number, *SYMBOLS)) else None
    if kind is not None:
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        return any(isinstance(w, type) and issubclass(kind, w) for w in wanted) or isinstance(value, kinds)
    return isinstance(value, kinds)


def _extreme(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    python = getattr(builtins, name)
    values = args
    if len(args) == 1:
        only = elements(args[0])
        args = (only,)
        if isinstance(only, torch.Tensor) and only.dim() == 1 and not kwargs:
            return _one_of(only.max() if name == "max" else only.min(), only)
        if has_rows(only) and MODE.capture is not None:
            from dy2st.operators.lists import extreme

            if "default" in kwargs:
                raise DynamicLengthError(
                    f"{name}() with a default, of a list of which only the graph knows whether it is empty",
                    hint=f"best = {name}(found) if found else ...",
                )
            return extreme(MODE.capture, name, only, **kwargs)
        if not isinstance(only, (list, tuple)):
            return python(*args, **kwargs)
        values = tuple(only)
        if not values and "default" not in kwargs and MODE.capture is not None:
            return MODE.capture.fail(ValueError(f"{name}() arg is an empty sequence"))
    values = tuple(map(characters, values))
    structured = kwargs or any(isinstance(v, tuple) for v in values)
    if set(kwargs) <= {"key"} and structured and values and MODE.capture is not None:
        from dy2st.operators.lists import extreme

        found = extreme(MODE.capture, name, values, **kwargs)
        if found is not None:
            return found
    if not any(is_staged(v) for v in values) or kwargs:
        return python(*args, **kwargs)
    return functools.reduce(lambda a, b: _pick_extreme(name, a, b), values)


def _pick_extreme(name: str, a: Any, b: Any) -> Any:
    """Python's rule: the later one only if it is strictly beyond the earlier."""
    if a is b:
        return a
    beyond = condition(b > a if name == "max" else b < a)
    if isinstance(beyond, bool):
        return b if beyond else a
    kinds = number_kind(a), number_kind(b)
    if kinds[0] is not None and kinds[0] is kinds[1]:
        return Number(torch.where(beyond, number_tensor(b), number_tensor(a)), kinds[0])
    tensors = [v for v in (a, b) if isinstance(v, torch.Tensor)]
    if len(tensors) == 2 and a.dtype is b.dtype and a.dim() == b.dim():
        return _one_of(torch.where(beyond, b, a), a, b)
    if len(tensors) == 1 and tensors[0].dim() == 0:
        kind = kinds[0] or kinds[1]
        assert kind is not None
        if promoted_dtype(tensors[0], kind) is tensors[0].dtype:
            like = tensors[0].dtype
            x, y = (v if isinstance(v, torch.Tensor) else number_tensor(v).to(like) for v in (a, b))
            return _one_of(torch.where(beyond, y, x), tensors[0])
    raise DifferentTypesError(
        f"{name}() of values of different types, of which only the graph knows the greater",
        hint=f"use values of one type, or torch.{name}imum",
    )


def _one_of(result: torch.Tensor, *older: torch.Tensor) -> torch.Tensor:
    """``result`` is eagerly one of these itself, or a part of one: a write to either is seen through the other."""
    if MODE.capture is not None:
        for each in older:
            MODE.capture.aliases.may_be(result, each)
    return result


@stands_for(max)
def _max(*args: Any, **kwargs: Any) -> Any:
    return _extreme("max", args, kwargs)


@stands_for(min)
def _min(*args: Any, **kwargs: Any) -> Any:
    return _extreme("min", args, kwargs)


@stands_for(sum)
def _sum(values: Any, start: Any = 0) -> Any:
    values = elements(values)
    if has_rows(values):
        rows = row_list(values)
        total = rows.stack.sum(0)
        values_sum: Any = Number(total, rows.kind) if rows.kind else total
        return _from(start, values_sum)
    if isinstance(values, torch.Tensor) and values.dim() > 0 and has_dynamic_length(values):
        return _from(start, values.sum(0))
    return sum(values, start)


def _from(start: Any, total: Any) -> Any:
    """``start + total``; the sum of nothing is ``start`` itself."""
    if isinstance(start, int) and start == 0:
        return total
    result = start + total
    return _one_of(result, start) if isinstance(start, torch.Tensor) else result


def _fold(values: Any, combine: Callable[[Any, Any], Any], unit: bool, reduce: Callable[[torch.Tensor], Any]) -> Any:
    values = elements(values)
    if has_rows(values):
        values = row_list(values).stack
    if isinstance(values, torch.Tensor) and values.dim() == 1:
        return truth_number(reduce(values if values.dtype is torch.bool else values != 0))
    found: Any = unit
    for value in values:
        found = combine(found, condition(value))
        if found is (not unit):
            return found
    return truth_number(found)


@stands_for(any)
def _any(values: Any) -> Any:
    return _fold(values, either, False, torch.any)


@stands_for(all)
def _all(values: Any) -> Any:
    return _fold(values, both, True, torch.all)


@stands_for(list)
def _list(*args: Any) -> Any:
    args = tuple(elements(a) for a in args)
    if args and has_rows(args[0]):
        args = (list(args[0]),)
    elif args and isinstance(args[0], (StagedIterable, torch.Tensor)) and as_iterable(args[0]) is not None:
        from dy2st.operators.lists import elements as rows_of

        args = (rows_of(args[0]),)
    elif args:
        found = as_iterable(args[0])
        if found is not None:
            raise DynamicLengthError(
                f"list() of {found.what} whose length is known only when the graph runs",
                hint="iterate over it with a for loop, or keep it a tensor",
            )
    made: list[Any] = list(*args)
    if MODE.capture is not None:
        MODE.capture.scopes[-1].born[id(made)] = made
    return made


@stands_for(sorted)
def _sorted(values: Any, **kwargs: Any) -> Any:
    if isinstance(values, (list, tuple, StagedIterable)) and MODE.capture is not None:
        from dy2st.operators.lists import sorted_list

        found = sorted_list(MODE.capture, values, **kwargs)
        if found is not None:
            return found
    plain = set(kwargs) <= {"reverse"} and isinstance(kwargs.get("reverse", False), bool)
    if plain and isinstance(values, torch.Tensor) and values.dim() == 1 and not has_dynamic_length(values):
        return list(torch.sort(values, descending=kwargs.get("reverse", False)).values.unbind(0))
    staged = isinstance(values, (list, tuple)) and any(is_staged(v) for v in values)
    if staged or isinstance(values, torch.Tensor):
        raise StagedNumberError("sorted() of values that only the graph knows", hint="use torch.sort on a tensor")
    return sorted(values, **kwargs)


@stands_for(print)
@knows_cases
def _print(*args: Any, **kwargs: Any) -> None:
    if not any(is_staged(a) or _mentions(a) for a in args):
        print(*args, **kwargs)  # noqa: T201  # what the user's print() does


def _mentions(value: Any) -> bool:
    """A string formatted from a staged value."""
    return isinstance(value, str) and (is_unknown(value) or "FakeTensor" in value)


def _quiet(original: Callable[..., Any]) -> Callable[..., Any]:
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        # Under a tensor condition only the graph knows whether anything is to be said.
        conditional = MODE.capture is not None and MODE.capture.conditional
        silent = conditional or any(is_staged(a) or _mentions(a) for a in args)
        if silent:
            return None
        # The line that is named is the caller's, behind this one.
        if original is not warnings.warn or len(args) < 3:
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        else:
            args = (*args[:2], args[2] + 1, *args[3:])
        return original(*args, **kwargs)

    return stand_in


for _function in (warnings.warn, logging.debug, logging.info, logging.warning, logging.error):
    STAND_INS[_function] = _quiet(_function)

MATH: dict[Any, tuple[Callable[..., Any], type]] = {
    math.sqrt: (torch.sqrt, float),
    math.exp: (torch.exp, float),
    math.log: (torch.log, float),
    math.log2: (torch.log2, float),
    math.log10: (torch.log10, float),
    math.log1p: (torch.log1p, float),
    math.expm1: (torch.expm1, float),
    math.sin: (torch.sin, float),
    math.cos: (torch.cos, float),
    math.tan: (torch.tan, float),
    math.asin: (torch.asin, float),
    math.acos: (torch.acos, float),
    math.atan: (torch.atan, float),
    math.atan2: (torch.atan2, float),
    math.sinh: (torch.sinh, float),
    math.cosh: (torch.cosh, float),
    math.tanh: (torch.tanh, float),
    math.erf: (torch.erf, float),
    math.fabs: (torch.abs, float),
    math.pow: (torch.pow, float),
    math.copysign: (torch.copysign, float),
    math.fmod: (torch.fmod, float),
    math.floor: (torch.floor, int),
    math.ceil: (torch.ceil, int),
    math.trunc: (torch.trunc, int),
    math.isnan: (torch.isnan, bool),
    math.isinf: (torch.isinf, bool),
    math.isfinite: (torch.isfinite, bool),
}


def _math(original: Any, on_tensor: Callable[..., Any], kind: type) -> Callable[..., Any]:
    def stand_in(*args: Any) -> Any:
        if not any(is_staged(a) for a in args):
            return original(*args)
        tensors = [(a.reshape(()) if isinstance(a, torch.Tensor) else number_tensor(a)).to(torch.float64) for a in args]
        if original is math.log and len(tensors) == 2:
            return Number(torch.log(tensors[0]) / torch.log(tensors[1]), float)
        return Number(on_tensor(*tensors).to(DTYPES[kind]), kind)

    return stand_in


for _original, (_on_tensor, _kind) in MATH.items():
    STAND_INS[_original] = _math(_original, _on_tensor, _kind)


@stands_for(divmod)
def _divmod(a: Any, b: Any) -> Any:
    return (a // b, a % b) if isinstance(a, SYMBOLS) or isinstance(b, SYMBOLS) else divmod(a, b)


@stands_for(abs)
def _abs(value: Any) -> Any:
    return abs(value)


@stands_for(round)
def _round(value: Any, digits: Any = None) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.round(value) if digits is None else torch.round(value, decimals=digits)
    if isinstance(value, torch.SymFloat):
        value = Number(number_tensor(value), float)
    return round(value) if digits is None else round(value, digits)


@stands_for(operator.index)
def _index(value: Any) -> Any:
    return value if isinstance(value, Number) else operator.index(value)


@stands_for(str)
def _str(*args: Any, **kwargs: Any) -> Any:
    return text(str(*args, **kwargs))


@stands_for(repr)
def _repr(value: Any) -> Any:
    return text(repr(value))


@stands_for(format)
def _format(value: Any, spec: str = "") -> Any:
    return text(format(value, spec))


@stands_for(type)
def _type(*args: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], (Number, *SYMBOLS)):
        return number_kind(args[0])
    return type(*args)


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
    return GRADIENTS.enabled and GRADIENTS.ambient


@stands_for(torch.is_nonzero)
def _is_nonzero(value: torch.Tensor) -> Any:
    return truth_number(condition(value))


def seed(*args: Any) -> torch.Generator:
    """Stands for ``torch.manual_seed``, which torch itself wraps anew at times: drawing after it is refused."""
    if MODE.capture is not None:
        MODE.capture.seeded = True
    return torch.default_generator


class TrackedDefaultDict(collections.defaultdict[Any, Any]):
    """A defaultdict made under a capture: reading a missing key is a store like any other."""

    def __missing__(self, key: Any) -> Any:
        """Store the default."""
        if MODE.capture is not None:
            MODE.capture.touch_content(self)
        return super().__missing__(key)


@stands_for(collections.defaultdict)
def _defaultdict(*args: Any, **kwargs: Any) -> Any:
    made = TrackedDefaultDict(*args, **kwargs)
    return made if MODE.capture is None else MODE.capture.new(made)


def stand_ins() -> dict[Any, Callable[..., Any]]:
    """The stand-ins, under the names that torch.export has put in place of builtins and ``math`` functions too."""
    from dy2st.operators.hinted import HINTS

    found = {**STAND_INS, **HINTS}
    for module in (builtins, math):
        for original, stand_in in STAND_INS.items():
            name = getattr(original, "__name__", "")
            if getattr(original, "__module__", None) == module.__name__:
                found[getattr(module, name)] = stand_in
    return found


@stands_for(next)
def _next(iterator: Any, *default: Any) -> Any:
    if MODE.capture is not None:
        MODE.capture.advances.note(iterator)
    return next(iterator, *default)


@stands_for(iter)
def _iter(*args: Any) -> Any:
    made = iter(*args)
    return made if MODE.capture is None or made is args[0] else MODE.capture.new(made)


@stands_for(setattr)
def _setattr(owner: Any, name: str, value: Any) -> None:
    setattr(owner if MODE.capture is None else MODE.capture.target(owner), name, value)


@stands_for(delattr)
def _delattr(owner: Any, name: str) -> None:
    delattr(owner if MODE.capture is None else MODE.capture.target(owner), name)


def _tolist(tensor: torch.Tensor) -> Any:
    if tensor.dim() == 0:
        return item(tensor)
    if has_dynamic_length(tensor):
        from dy2st.operators.pieces import listed

        return listed(tensor)
    return [_tolist(row) for row in tensor.unbind(0)]


class _Unknown:
    """Stands in a text for what is known only when the graph runs."""

    def __format__(self, spec: str) -> str:
        return f"<{UNKNOWN}>"

    def __repr__(self) -> str:
        return f"<{UNKNOWN}>"


def _text_method(method: Callable[..., str]) -> Callable[..., str]:
    """``str.format`` and its kind with staged arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(elements(a) for a in args)
        given, kwargs = pytree.tree_map(lambda leaf: _Unknown() if is_staged(leaf) else leaf, (args, kwargs))
        return text(method(*given, **kwargs))

    return call


def bound_stand_in(method: Any) -> Callable[..., Any] | None:
    """What stands for a bound method of a tensor, or None."""
    owner = getattr(method, "__self__", None)
    if isinstance(owner, str) and method.__name__ in ("format", "format_map", "join"):
        return _text_method(method)
    if isinstance(owner, torch.Tensor):
        name = getattr(method, "__name__", "")
        if name == "item":
            return lambda: item(owner)
        if name == "tolist":
            return lambda: _tolist(owner)
        if name == "numpy":
            raise NumpyError(
                "numpy is used on a tensor that only the graph knows", hint="use the torch function of the same name"
            )
    return None
