"""Arguments that are Python numbers as inputs of a program: 0-d tensors outside, numbers that the model computes with.

Without that a number is a constant of the program, as it is for ``torch.export``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import UsageError
from dy2st.values.number import DTYPES, Number

InputsAs = Mapping[str, Literal["tensor"]]

_KINDS: dict[torch.dtype, type] = {dtype: kind for kind, dtype in DTYPES.items()}


def require_inputs_as(given: Any) -> None:
    """Accept what may be said of inputs.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"inputs_as={given!r} names no arguments", hint='inputs_as={"steps": "tensor"}')
    for name, kind in given.items():
        if kind != "tensor":
            raise UsageError(f"inputs_as has {kind!r} for {name!r}", hint='"tensor"')


def as_tensors(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None, inputs_as: InputsAs
) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
    """The arguments of a call with a 0-d tensor for each number: int64, float64 or bool.

    Args:
        call: the function, whose signature names the arguments.
        args: those by position.
        kwargs: those by name; one that is left out is taken from the signature.
        inputs_as: the names of those that are numbers, or have some in them. Such a tensor may be there already.

    Raises:
        UsageError: there is no such argument, no number in it, or a tensor beside a number that might be one.
    """
    require_inputs_as(inputs_as)
    if not inputs_as:
        return args, kwargs
    places, given = _places(call, args, dict(kwargs or {}), inputs_as)
    found = list(args)
    for name in inputs_as:
        if name not in places:
            known = ", ".join(places)
            raise UsageError(f"there is no argument {name!r} to be an input", hint=f"one of {known}" if known else "")
        place = places[name]
        value = found[place] if isinstance(place, int) else given[place]
        numbers = [leaf for leaf in pytree.tree_leaves(value) if _is_number(leaf)]
        if len({isinstance(leaf, torch.Tensor) for leaf in numbers}) > 1:
            raise UsageError(
                f"the argument {name!r} has numbers in it, and tensors that would be taken for numbers",
                hint="pass the tensors in an argument of their own",
            )
        if not numbers:
            raise UsageError(
                f"the argument {name!r} has no number in it that could be an input",
                hint="tensors are inputs as they are, and texts and None are constants",
            )
        made = pytree.tree_map(_as_tensor, value)
        if isinstance(place, int):
            found[place] = made
        else:
            given[place] = made
    return tuple(found), given


def _places(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], wanted: InputsAs
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where each argument is: its position or its name; and those by name, with the defaults of such as are wanted."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return {name: name for name in kwargs}, kwargs
    places: dict[str, Any] = {}
    for position, each in enumerate(parameters):
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) and position < len(args):
            places[each.name] = position
        elif each.name in wanted and each.name not in kwargs and each.default is not each.empty:
            kwargs = {**kwargs, each.name: each.default}
    return {**places, **{name: name for name in kwargs}}, kwargs


def _is_number(leaf: Any) -> bool:
    return type(leaf) in DTYPES or (isinstance(leaf, torch.Tensor) and leaf.dim() == 0 and leaf.dtype in _KINDS)


def _as_tensor(leaf: Any) -> Any:
    return torch.tensor(leaf, dtype=DTYPES[type(leaf)]) if type(leaf) in DTYPES else leaf


def as_numbers(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    inputs_as: InputsAs,
    make: Callable[[torch.Tensor, type], Any] = Number,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What ``as_tensors`` has made, with a number that is known when the graph runs for each 0-d tensor.

    ``make`` makes another number of a tensor and its type.
    """
    places, given = _places(call, args, dict(kwargs), {})
    found = list(args)

    def number(leaf: Any) -> Any:
        is_number = isinstance(leaf, torch.Tensor) and _is_number(leaf)
        return make(leaf, _KINDS[leaf.dtype]) if is_number else leaf

    for name in inputs_as:
        place = places[name]
        if isinstance(place, int):
            found[place] = pytree.tree_map(number, found[place])
        else:
            given[place] = pytree.tree_map(number, given[place])
    return tuple(found), given
