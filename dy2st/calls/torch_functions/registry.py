"""Which torch functions are replaced under a capture, and by what: ``@replaces(torch.f)``.

A replacement takes what the torch function takes, and gives NotImplemented where torch's own will do. With
``sized=True`` that is so wherever all sizes and numbers of the call are Python's: the replacement is for those that are
known only when the graph runs, and is not asked otherwise.

Each family of functions has a module beside this one; ``dispatch`` imports them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

import torch
from torch.nn import functional

from dy2st.staging.session import MODE
from dy2st.values.number import Number
from dy2st.values.stacked_list import has_rows

Form = TypeVar("Form", bound=Callable[..., Any])

REPLACEMENTS: dict[Any, tuple[Callable[..., Any], bool]] = {}


def under_all_names(name: str) -> list[Any]:
    """The torch functions and methods that are called ``name``."""
    found = [getattr(owner, name, None) for owner in (torch, torch.functional, torch.Tensor, functional)]
    found.append(getattr(functional, f"_{name}", None))  # what a boolean_dispatch calls
    found = [function for function in found if function is not None]
    if not found:
        raise AttributeError(f"torch has no function called {name}")
    return found


def replaces(*functions: Any, sized: bool = False) -> Callable[[Form], Form]:
    """The decorated function stands for ``functions``: a name stands for whatever of torch has it."""

    def register(form: Form) -> Form:
        for function in functions:
            for each in under_all_names(function) if isinstance(function, str) else [function]:
                REPLACEMENTS[each] = form, sized
        return form

    return register


def replacement(function: Any, args: Any, kwargs: Any) -> Any:
    """The result of what is called in place of a function, or NotImplemented if torch's own will do."""
    found = REPLACEMENTS.get(function)
    if found is None or MODE.capture is None:
        return NotImplemented
    form, sized = found
    if sized and known((*args, *kwargs.values())):
        return NotImplemented
    if not kwargs.keys() <= _keywords(form):
        args, kwargs = _in_their_places(function, args, kwargs)
    return form(*args, **kwargs)


@functools.cache
def _keywords(form: Callable[..., Any]) -> AbstractSet[str]:
    try:
        return inspect.signature(form).parameters.keys()
    except ValueError:  # a function of torch's own has none
        return frozenset()


def _in_their_places(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments without those keywords that an operator of the same name has places for: torch calls self input."""
    operator = getattr(torch.ops.aten, getattr(function, "__name__", ""), None)
    if not isinstance(operator, torch._ops.OpOverloadPacket):  # a name that every Python object has, like __repr__
        return args, kwargs
    schema = getattr(operator, operator.overloads()[0])._schema
    names = ["input" if each.name == "self" else each.name for each in schema.arguments if not each.kwarg_only]
    rest = dict(kwargs)
    for name in names[len(args) :]:
        if name not in rest:
            break
        args = (*args, rest.pop(name))
    return args, rest


def ints(*sizes: Any) -> bool:
    """Whether all sizes are Python's."""
    return all(isinstance(size, int) for size in sizes)


def known(values: Iterable[Any]) -> bool:
    """Whether the sizes of all tensors among values, and all numbers, are Python's."""
    return all(map(_is_known, values))


def _is_known(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return ints(*value.shape)
    if isinstance(value, (list, tuple)):
        # How many numbers a list with rows has is data, as they are.
        return not has_rows(value) and known(value)
    return not isinstance(value, (Number, torch.SymInt, torch.SymFloat, torch.SymBool))
