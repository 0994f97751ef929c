"""The inputs of a program that are state: keyword arguments behind the model's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from dy2st.capture.carried_state import PREFIX
from dy2st.sizes.declared import by_argument


def apart(kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The model's own keyword arguments, and the inputs that are state."""
    state = {name: value for name, value in kwargs.items() if name.startswith(PREFIX)}
    return {name: value for name, value in kwargs.items() if name not in state}, state


def with_inputs(call: Callable[..., Any], state: Mapping[str, Any]) -> Callable[..., Any]:
    """``call`` with the signature of one that takes the state as well: it is run without."""

    @functools.wraps(call, updated=())
    def function(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **apart(kwargs)[0])

    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        del function.__wrapped__  # what has no signature takes anything
        return function
    parameters = list(signature.parameters.values())
    rest = [each for each in parameters if each.kind is each.VAR_KEYWORD]
    own = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in state]
    function.__signature__ = signature.replace(parameters=[*own, *more, *rest])  # type: ignore[attr-defined]
    return function


def with_shapes(shapes: Any, call: Any, args: Any, kwargs: Any, state: Mapping[str, Any]) -> Any:
    """``dynamic_shapes`` of the model's own arguments and of the state."""
    if hasattr(shapes, "dynamic_shapes"):  # ShapesCollection, AdditionalInputs
        shapes = shapes.dynamic_shapes(call, args, kwargs)
    if not state or (shapes is None and not any(state.values())):
        return shapes
    return {**by_argument(call, args, kwargs, shapes), **state}
