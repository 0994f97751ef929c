"""``dynamic_shapes`` as those of one call: names as dimensions, builders asked, and only what the call gives.

Source: ``torch.export.ShapesCollection``, which knows tensors by their identity, and ``torch.export.AdditionalInputs``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import UsageError
from dy2st.sizes.named import with_dims


def shapes_of_call(model: Any, args: Any, kwargs: Any, shapes: Any) -> Any:
    """What is declared of the sizes of this call's arguments; None where it is nothing.

    It has to be asked before anything is copied: a ``ShapesCollection`` knows the tensors themselves. An entry for a
    parameter that the call leaves out says nothing, unless its default has sizes.

    Raises:
        UsageError: a name is no identifier, or a builder does not fit the arguments.
    """
    call = model.forward if isinstance(model, torch.nn.Module) else model
    if hasattr(shapes, "dynamic_shapes"):
        try:
            shapes = shapes.dynamic_shapes(call, args, kwargs)
        except (ValueError, AssertionError) as error:
            raise UsageError(
                f"{type(shapes).__name__} does not fit the arguments: {str(error).partition('. ')[0]}"
            ) from error
    shapes = with_dims(shapes)
    if type(shapes) is dict:
        shapes = _given(call, args, kwargs, shapes)
    empty = isinstance(shapes, (Mapping, tuple, list)) and not shapes
    return None if empty else shapes


def leaves_by_name(call: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The leaves of a call's arguments, each by what a user calls it: ``x``, ``others[0]``."""
    args = args if isinstance(args, (tuple, list)) else ()  # torch.export says what is wrong with others
    try:
        arguments = inspect.signature(call).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        arguments = {**{f"args[{number}]": value for number, value in enumerate(args)}, **kwargs}
    return {
        f"{name}{pytree.keystr(path)}": leaf
        for name, value in arguments.items()
        for path, leaf in pytree.tree_flatten_with_path(value)[0]
    }


def _given(call: Any, args: Any, kwargs: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    """The entries without those of parameters that the call leaves out."""
    try:
        signature = inspect.signature(call)
        given = signature.bind(*args, **(kwargs or {})).arguments
    except (TypeError, ValueError):
        return shapes  # what has no signature, and a call that does not fit it: eager's to refuse

    def left_out(name: str) -> bool:
        parameter = signature.parameters.get(name)
        if parameter is None or name in given:
            return False
        sized = any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(parameter.default))
        return not (sized and shapes[name])

    return {name: shape for name, shape in shapes.items() if not left_out(name)}
