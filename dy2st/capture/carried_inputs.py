"""Inputs by keyword that the model's signature doesn't name: those that ``**kwargs`` take, and those that are state."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from dy2st.capture.carried_state import PREFIX
from dy2st.sizes.declared import by_argument


def apart(kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The model's own keyword arguments, and the inputs that are state."""
    state = {name: value for name, value in kwargs.items() if name.startswith(PREFIX)}
    return {name: value for name, value in kwargs.items() if name not in state}, state


def with_named_keywords(call: Callable[..., Any], args: Any, kwargs: Any, shapes: Any) -> tuple[Any, Any]:
    """``call`` with a signature that names what its ``**kwargs`` take, and ``dynamic_shapes`` by these names.

    torch.export (2.13) fails where dynamic shapes are given for ``**kwargs``. They may be given by the names of the
    keywords, or as torch has them, as a dict for the whole of ``**kwargs``.
    """
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):
        return call, shapes
    rest = next((name for name, each in parameters.items() if each.kind is each.VAR_KEYWORD), None)
    taken = [name for name in kwargs or {} if name not in parameters or name == rest]
    if rest is None or not taken:
        return call, shapes
    if isinstance(shapes, Mapping) and rest in shapes and rest not in taken:
        shapes = {**{name: each for name, each in shapes.items() if name != rest}, **_by_name(taken, shapes[rest])}
    elif isinstance(shapes, (tuple, list)):
        given = len(inspect.signature(call).bind(*args, **kwargs).arguments)
        if len(shapes) == given:
            shapes = (*shapes[:-1], *_by_name(taken, shapes[-1]).values())
    return _with_keywords(call, taken, drop_rest=True), shapes


def _by_name(names: Iterable[str], shapes: Any) -> dict[str, Any]:
    return {**dict.fromkeys(names), **(shapes or {})}


def with_inputs(call: Callable[..., Any], state: Mapping[str, Any]) -> Callable[..., Any]:
    """``call`` with the signature of one that takes the state as well: it is run without."""
    return _with_keywords(call, state)


def _with_keywords(call: Callable[..., Any], names: Iterable[str], *, drop_rest: bool = False) -> Callable[..., Any]:
    @functools.wraps(call, updated=())
    def function(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **apart(kwargs)[0])

    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        del function.__wrapped__  # what has no signature takes anything
        return function
    parameters = list(signature.parameters.values())
    rest = [each for each in parameters if each.kind is each.VAR_KEYWORD and not drop_rest]
    own = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    function.__signature__ = signature.replace(parameters=[*own, *more, *rest])  # type: ignore[attr-defined]
    return function


def with_shapes(shapes: Any, call: Any, args: Any, kwargs: Any, state: Mapping[str, Any]) -> Any:
    """``dynamic_shapes`` of the model's own arguments and of the state."""
    if not state or (shapes is None and not any(state.values())):
        return shapes
    return {**by_argument(call, args, kwargs, shapes), **state}
