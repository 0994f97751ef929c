"""Calls of code that isn't converted: of the standard library, of other packages, of C."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.calls import border
from dy2st.calls.randomness import is_source
from dy2st.calls.torch_functions.eager_errors import eager_error
from dy2st.calls.torch_functions.registry import REPLACEMENTS
from dy2st.source.user_frames import module_of
from dy2st.staging.cases import all_there, has_maybe_keys
from dy2st.staging.conditions import condition, truth_number
from dy2st.staging.containers.data_keyed import gather_by_data
from dy2st.staging.memory.heap_snapshot import is_buffer
from dy2st.staging.session import Session
from dy2st.staging.untracked_mutation import watched
from dy2st.staging.users_code import OWN_PACKAGES
from dy2st.values.extensions import running
from dy2st.values.journal import CONTAINERS, Slot
from dy2st.values.number import Number
from dy2st.values.staged_text import makes_unknown, unknown_kind

# Torch functions that take sizes one by one.
FACTORIES = frozenset("zeros ones empty rand randn new_zeros new_ones new_empty expand".split())
# Builtins that only look at an object.
LOOKING = (id, type, hash, callable, repr, str, getattr, hasattr, setattr, delattr, isinstance)
# What calls a function that it is given: the place of that function; None if it has a name only.
HIGHER_ORDER: dict[Any, int | None] = {
    map: 0,
    filter: 0,
    functools.reduce: 0,
    functools.cmp_to_key: 0,
    itertools.accumulate: 1,
    itertools.dropwhile: 0,
    itertools.filterfalse: 0,
    itertools.groupby: 1,
    itertools.starmap: 0,
    itertools.takewhile: 0,
    heapq.merge: None,
    heapq.nlargest: 2,
    heapq.nsmallest: 2,
    bisect.bisect_left: None,
    bisect.bisect_right: None,
    bisect.insort_left: None,
    bisect.insort_right: None,
}
CALLBACKS = ("func", "key")
# The local variable, and the argument of getrefcount itself.
ONLY_OURS = 2


def hashable(value: Any) -> bool:
    """Whether a callable can be looked up."""
    return type(value).__hash__ is not None


def marking(capture: Session, function: Callable[..., Any]) -> Callable[..., Any]:
    """Call code that isn't followed; a container or object that nobody else refers to was made by it."""
    takes_functions = hashable(function) and function in HIGHER_ORDER

    def run(*args: Any, **kwargs: Any) -> Any:
        if makes_unknown(function, args):
            return unknown_kind(function)(*args, **kwargs)
        args, kwargs = border.admitted(function, args, kwargs)
        if hashable(function) and function in REPLACEMENTS:
            # torch looks at the types of its arguments first, and takes no bool of the graph; what stands for it does.
            args, kwargs = pytree.tree_map_only(torch.SymBool, _truth, (args, kwargs))
        if takes_functions:
            place = HIGHER_ORDER[function]
            args = tuple(_given(capture, each) if i == place else each for i, each in enumerate(args))
            kwargs = {name: _given(capture, each) if name in CALLBACKS else each for name, each in kwargs.items()}
        if (capture.depth > 1 or capture.aliases.any_alike()) and not (
            isinstance(getattr(function, "__self__", None), torch.Tensor) or module_of(function).startswith("torch")
        ):
            # Code that isn't converted may change a container that it is given (heapq, list.append(rows, x)).
            for value in (*args, *kwargs.values()):
                if isinstance(value, CONTAINERS) and not border.leaves_arguments(function):
                    capture.touch(Slot.of("content", value))
        if function not in LOOKING:
            args = tuple(map(capture.advances.watched, args))
        if len(args) > 1 and isinstance(args[0], Number) and function.__name__ in FACTORIES:
            # torch looks at the first of several sizes to know that they are sizes.
            args = tuple(_size(a) if isinstance(a, Number) else a for a in args)
        with watched(capture, function, args, kwargs), running(function, border.called(function)):
            try:
                made = capture.advances.noted(function(*args, **kwargs))
            except TypeError as error:
                # torch looks at the types of its arguments before it looks for ``__torch_function__``.
                found = eager_error(function, args, kwargs, error) if capture.conditional else None
                if found is None:
                    raise
                return capture.fail(found)
        holds = isinstance(made, CONTAINERS) or (hasattr(made, "__dict__") and not isinstance(made, torch.Tensor))
        if (holds or is_source(made) or is_buffer(made)) and sys.getrefcount(made) <= ONLY_OURS:
            capture.new(made)
        return made

    return run


def _truth(value: torch.SymBool) -> Any:
    return truth_number(condition(value))


def _given(capture: Session, value: Any) -> Any:
    """What to hand to a function that calls its argument; of a container's own method each call is followed."""
    method = getattr(type(value), "__call__", None)  # noqa: B004  # the method itself is wanted
    calls = isinstance(method, types.FunctionType)
    if calls or isinstance(value, (type, types.FunctionType, types.MethodType, functools.partial)):
        return capture.call(value)

    def call(*args: Any, **kwargs: Any) -> Any:
        return capture.call(value)(*args, **kwargs)

    late = isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, CONTAINERS)
    return call if late or isinstance(value, operator.methodcaller) else value


def method_caller(capture: Session, function: Any) -> Callable[..., Any]:
    """``operator.methodcaller(name, ...)``."""
    made, args = function.__reduce__()
    kwargs: dict[str, Any] = {}
    if isinstance(made, functools.partial):
        args, kwargs = (*made.args, *args), made.keywords
    name, *given = args
    return lambda owner: capture.call(getattr(owner, name))(*given, **kwargs)


def _size(number: Number) -> Any:
    size = number.symbolic()
    torch._check(size >= 0)
    return size


def recording(capture: Session, method: types.MethodType) -> Callable[..., Any]:
    """A method that isn't converted: what it may store in its object or arguments is recorded (``Counter.update``)."""
    owner = method.__self__
    package = module_of(method).split(".")[0]
    if isinstance(owner, (type, torch.nn.Module)) or package in (*OWN_PACKAGES, "logging", "warnings"):
        return method

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        gather_by_data(capture, owner, args)
        given, named = border.admitted(method, args, kwargs)
        held = dict(getattr(owner, "__dict__", {}))
        for value in held.values():
            if has_maybe_keys(value):
                all_there(capture, value)
        if capture.depth > 1:
            for name, value in held.items():
                capture.touch(Slot.of("attribute", owner, name))
                capture.touch_content(value)
            for value in (owner, *args, *kwargs.values()):
                capture.touch_content(value)
        with watched(capture, method, args, kwargs):
            return method(*given, **named)

    return run
