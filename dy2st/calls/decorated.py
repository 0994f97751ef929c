"""Callables that the standard library's decorators make: what they wrap is followed."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from dy2st.calls.caches import cached
from dy2st.calls.held_classes import convert_classes_around
from dy2st.calls.managers import CapturedManager
from dy2st.errors import StagedPathError
from dy2st.staging.memory.heap import CACHED
from dy2st.staging.session import Session
from dy2st.staging.users_code import python_function
from dy2st.values.number import number_kind


def looks_at_its_caller() -> tuple[Any, ...]:
    """Debuggers, and what shows a stack: the frame that calls them has to be the user's. Tests exchange some."""
    set_trace = getattr(sys.modules.get("pdb"), "set_trace", None)
    return breakpoint, set_trace, inspect.currentframe, inspect.stack, sys._getframe


def decorated(capture: Session, function: Any) -> Callable[..., Any] | None:
    """What to call in place of a function that isn't followed like others, or None."""
    if any(function is each for each in looks_at_its_caller()):
        return function  # type: ignore[no-any-return]
    if isinstance(function, CACHED):
        return cached(capture, function)
    if isinstance(function, types.FunctionType) and _makes_managers(function):
        return _manager_maker(capture, function)
    if isinstance(function, types.FunctionType) and function.__code__.co_filename == functools.__file__:
        return _dispatching(capture, function)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, contextlib.ExitStack) and isinstance(function, types.MethodType):
        return _on_stack(capture, owner, function)
    return None


def _dispatching(capture: Session, function: types.FunctionType) -> Callable[..., Any] | None:
    """What ``functools.singledispatch`` and ``singledispatchmethod`` make: staged numbers are of Python's types."""

    def kind(args: tuple[Any, ...]) -> type:
        return (number_kind(args[0]) or type(args[0])) if args else object

    if function.__code__.co_qualname == "singledispatch.<locals>.wrapper":
        dispatch: Any = function.dispatch  # type: ignore[attr-defined]
        return lambda *args, **kwargs: capture.call(dispatch(kind(args)))(*args, **kwargs)
    if function.__code__.co_qualname == "singledispatchmethod.__get__.<locals>._method":
        found = inspect.getclosurevars(function).nonlocals
        of_class: Any = found["self"].dispatcher.dispatch
        bound = found["obj"], found.get("cls")
        return lambda *args, **kwargs: capture.call(of_class(kind(args)).__get__(*bound))(*args, **kwargs)
    return None


def _makes_managers(function: types.FunctionType) -> bool:
    """Whether ``contextlib.contextmanager`` made it."""
    code = function.__code__
    return code.co_filename == contextlib.__file__ and code.co_name == "helper" and hasattr(function, "__wrapped__")


def _manager_maker(capture: Session, helper: Any) -> Callable[..., Any]:
    wrapped = helper.__wrapped__
    convert_classes_around(capture, wrapped)
    rewritten = python_function(wrapped)
    if rewritten is wrapped or not isinstance(rewritten, types.FunctionType):
        return helper  # type: ignore[no-any-return]
    return contextlib.contextmanager(rewritten)


def _on_stack(capture: Session, stack: contextlib.ExitStack[Any], method: types.MethodType) -> Callable[..., Any]:
    """A method of an ``ExitStack``: what it registers belongs to every path."""
    if capture.depth > 1 and id(stack) not in capture.trace_frames[-1].born and method.__name__ != "close":
        raise StagedPathError(
            "an ExitStack is changed under a tensor condition or in a staged loop",
            hint="use a with statement inside the branch or loop",
        )
    if method.__name__ == "enter_context":
        return lambda manager: method(CapturedManager(capture, manager))
    return method
