"""What a call of ``torch.onnx.export`` says of a model and its example, in the forms that dy2st takes.

Source: the documentation of ``torch.onnx.export``, https://docs.pytorch.org/docs/stable/onnx_export.html.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.record_inputs import know_records
from dy2st.errors import UsageError
from dy2st.parity.inputs import InputSet, bound_arguments, signature_of
from dy2st.sizes.call_shapes import shapes_of_call
from dy2st.tracing.named_tuples import with_leaves
from dy2st.values.describing import describe


@dataclass(frozen=True)
class ExampleCall:
    """One example call, which of its sizes may change, and the names of the file's inputs and outputs."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any
    input_names: Sequence[str] | None
    output_names: Sequence[str] | None


def example_call(
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    dynamic_axes: Mapping[str, Any] | None,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    number_inputs: Collection[str] = (),
) -> ExampleCall:
    """Read the arguments as ``torch.onnx.export`` does.

    A tensor alone is one argument. A dict at the end of ``args`` is keyword arguments, where no others are given and it
    fits the model's signature. A ``torch.onnx.ExportableModule`` has its own example, where none is given.
    ``dynamic_shapes`` go before ``dynamic_axes``. ``number_inputs`` are the arguments whose numbers are inputs, too.

    Raises:
        UsageError: ``args`` or ``dynamic_axes`` have another form, or name what there is not.
    """
    if isinstance(args, torch.Tensor):
        args = (args,)
    if not isinstance(args, (tuple, list)):
        raise UsageError(f"args is {describe(args)}, and no tuple of arguments", hint="(x,) for one argument")
    args, named = tuple(args), dict(kwargs or {})
    call = ExampleCall(args, named, dynamic_shapes, input_names, output_names)
    if isinstance(model, torch.export.ExportedProgram):
        if dynamic_axes:
            raise UsageError(
                "dynamic_axes is for a model: the sizes of a program are those that it was exported with",
                hint="torch.export.export(model, args, dynamic_shapes=...)",
            )
        return call
    if isinstance(model, torch.onnx.ExportableModule) and not args and not named:
        call = _own_example(model, call)
    elif not named and args and isinstance(args[-1], dict):
        call = replace(call, **_last_as_keywords(model, args))
    if call.dynamic_shapes is None and dynamic_axes is not None:
        return replace(call, dynamic_shapes=_shapes_of_axes(model, call, dynamic_axes, number_inputs))
    return replace(call, dynamic_shapes=shapes_of_call(model, call.args, call.kwargs, call.dynamic_shapes))


def _own_example(model: torch.onnx.ExportableModule, call: ExampleCall) -> ExampleCall:
    args, kwargs = model.example_arguments()
    return ExampleCall(
        tuple(args),
        dict(kwargs or {}),
        model.dynamic_shapes() if call.dynamic_shapes is None else call.dynamic_shapes,
        model.input_names() if call.input_names is None else call.input_names,
        model.output_names() if call.output_names is None else call.output_names,
    )


def _last_as_keywords(model: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """``args`` and ``kwargs`` with the dict at the end as keywords, if the model takes these; else as they are."""
    signature, last = signature_of(model), args[-1]
    if signature is None or not all(isinstance(key, str) for key in last):
        return {}
    try:
        signature.bind(*args[:-1], **last)
    except TypeError:
        return {}
    return {"args": args[:-1], "kwargs": dict(last)}


def _shapes_of_axes(
    model: Any, call: ExampleCall, axes: Mapping[str, Any], number_inputs: Collection[str]
) -> dict[str, Any]:
    """``dynamic_axes`` as ``dynamic_shapes`` of the same tensors.

    The names are those of the file's inputs: the n-th of ``input_names`` is that of the n-th input, and where none is
    given, a tensor that is an argument has the parameter's name. What is said of outputs follows from the inputs.
    """
    know_records((call.args, call.kwargs))
    bound = _in_order(bound_arguments(model, InputSet("example", call.args, call.kwargs)), call.kwargs)
    leaves, spec = pytree.tree_flatten(bound)
    inputs, places, index = list[int](), dict[str, int](), 0
    for name, value in bound.items():
        if isinstance(value, torch.Tensor):
            places[name] = index
        for leaf in pytree.tree_leaves(value):
            if isinstance(leaf, torch.Tensor) or (name in number_inputs and isinstance(leaf, (bool, int, float))):
                inputs.append(index)
            index += 1
    places.update(zip(call.input_names or (), inputs, strict=False))
    outputs = set(call.output_names or ())
    found: list[Any] = [None] * len(leaves)
    for name, dims in axes.items():
        if name in places:
            found[places[name]] = _dims(name, dims, leaves[places[name]])
        elif name not in outputs:
            known = ", ".join(dict.fromkeys([*places, *sorted(outputs)])) or "none"
            raise UsageError(f"dynamic_axes has {name!r}, which is no input and no output", hint=f"one of {known}")
    return dict(with_leaves(found, spec))


def _in_order(bound: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments in the order of the graph's inputs: those by position, then those by name as they were given."""
    return {**{name: value for name, value in bound.items() if name not in kwargs}, **kwargs}


def _dims(name: str, axes: Any, given: Any) -> dict[int, str]:
    """The named dimensions of one tensor; a list of axes gets the names that ``torch.onnx.export`` gives them."""
    if axes is None:
        return {}
    if isinstance(axes, Mapping):
        named = dict(axes)
    elif isinstance(axes, Sequence) and not isinstance(axes, str):
        named = {axis: f"{name}_dynamic_axes_{number}" for number, axis in enumerate(axes, 1)}
    else:
        raise UsageError(f"dynamic_axes has {describe(axes)} for {name!r}", hint='{0: "batch"} or [0]')
    count, found = given.dim() if isinstance(given, torch.Tensor) else 0, dict[int, str]()
    for axis, label in named.items():
        if type(axis) is not int or not isinstance(label, str):
            raise UsageError(f"dynamic_axes has {axis!r}: {label!r} for {name!r}", hint='{0: "batch"} or [0]')
        if not -count <= axis < count:
            raise UsageError(f"dynamic_axes names dimension {axis} of {name!r}, which has {count or 'none'}")
        found[axis % count] = re.sub(r"\W", "_", label)
    return found


def require_mode(model: Any, training: Any) -> None:
    """Accept the mode that the model is in, for what ``training`` wants of it.

    Raises:
        UsageError: it wants train mode, and the model is in eval mode.
    """
    wanted = getattr(training, "name", str(training))
    is_eval = isinstance(model, torch.nn.Module) and not model.training
    if wanted == "TRAINING" and is_eval:
        raise UsageError("training asks for train mode, and the model is in eval mode", hint="model.train() before")


def require_forms(*, opset_version: Any, names: Mapping[str, Any], mappings: Mapping[str, Any]) -> None:
    """Accept a whole number as opset, names that are texts and differ, and dicts where a dict is meant.

    Raises:
        UsageError: one is of another form.
    """
    if not isinstance(opset_version, (int, NoneType)) or isinstance(opset_version, bool):
        raise UsageError(f"opset_version is {describe(opset_version)}", hint="a whole number, or None")
    for option, value in names.items():
        if value is None:
            continue
        if not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
            raise UsageError(f"{option} is {describe(value)}, and no list of texts", hint='["x", "y"]')
        twice = next((each for each in value if list(value).count(each) > 1), None)
        if twice is not None:
            raise UsageError(f"{option} has {twice!r} twice", hint="one name for each")
    for option, value in mappings.items():
        if value is not None and not isinstance(value, Mapping):
            raise UsageError(f"{option} is {describe(value)}, and no dict")
