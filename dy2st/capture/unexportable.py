"""Models that no program can hold, told before they are captured: quantized modules, tensors without values.

torch.export and torch's own operators would say so somewhere inside, in words about themselves.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from dy2st.calls.communication import check_spread
from dy2st.errors import CaptureError, UsageError
from dy2st.values.describing import describe

# Its module of quantized layers; a layer keeps its weights packed, in an object of C++.
_QUANTIZED = "torch.ao.nn"


def require_call(model: Any, args: Any, kwargs: Any) -> None:
    """Accept a model and arguments as ``torch.export.export`` takes them.

    Raises:
        UsageError: ``model`` can't be called, ``args`` is no tuple, or ``kwargs`` no dict.
    """
    if not callable(model):
        raise UsageError(f"an object of type {type(model).__name__} is neither a module nor a function")
    if not isinstance(args, tuple):
        raise UsageError(f"args is {describe(args)}, and no tuple of arguments", hint="(x,) for one argument")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        path = isinstance(kwargs, (str, os.PathLike))
        hint = "dy2st.onnx.export(model, args, path) writes a file" if path else '{"x": x} for an argument x'
        raise UsageError(f"kwargs is {describe(kwargs)}, and no dict of arguments", hint=hint)


def require_capturable(tensors: Mapping[str, Any], root: torch.nn.Module) -> None:
    """Accept what a program is captured with: its inputs and what the module holds, by name, and the module.

    Raises:
        Dy2stError: there is something among it that no program takes or holds.
    """
    require_traceable(root)
    check_spread(tensors)
    if any(isinstance(each, torch.Tensor) and not _is_meta(each) for each in tensors.values()):
        require_values(tensors)  # without any values at all a program can be made


def require_traceable(root: torch.nn.Module) -> None:
    """Accept a module whose attributes torch.export can trace, in all that it consists of.

    Raises:
        CaptureError: one holds an object of C++ that torch.export has no stand-in for.
    """
    for path, module in root.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            continue
        for held in vars(module).values():
            if isinstance(held, torch.ScriptObject) and not _has_stand_in(held):
                _refuse(root, path, module, held)


def require_values(tensors: Mapping[str, Any]) -> None:
    """Accept tensors that have values.

    Raises:
        UsageError: one is on the device meta.
    """
    name = next((name for name, value in tensors.items() if _is_meta(value)), None)
    if name is not None:
        raise UsageError(
            f"{name} is on the device meta, and has no values",
            hint='model.to_empty(device="cpu"), and load the weights',
        )


def _is_meta(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_meta


def _has_stand_in(held: Any) -> bool:
    """Whether a class of C++ can be traced: it can be taken apart, or is registered as one that need not be."""
    try:
        return bool(held._has_method("__obj_flatten__"))
    except RuntimeError:
        return True


def _refuse(root: torch.nn.Module, path: str, module: torch.nn.Module, held: Any) -> None:
    parents = [root.get_submodule(path.rpartition(".")[0]), module]
    layer = next((each for each in parents if type(each).__module__.startswith(_QUANTIZED)), None)
    if layer is None:
        raise CaptureError(
            f"{path or 'the model'} holds {held._type().name()}, an object of C++ that a program can't hold",
            hint="compute with tensors, or register a stand-in: torch._library.register_fake_class",
        )
    kind = type(layer)
    raise CaptureError(
        f"{path if layer is module else path.rpartition('.')[0]} is quantized ({kind.__module__}.{kind.__qualname__}):"
        " its weights are in an object of C++ that a program can't hold",
        hint="export the float model, and quantize the file: onnxruntime.quantization.quantize_dynamic",
    )
