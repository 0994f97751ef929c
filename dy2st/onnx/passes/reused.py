"""What torch's exporter makes anew for every file, though it is the same every time.

It parses the source of all its translations (five hundred functions), reads the signatures of ours, and looks all
operators up. For a small model that is most of an export. Here it is made once in a process, and again when something
was registered meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from onnxscript.function_libs.torch_lib import registration
from torch._export import utils as export_utils
from torch.onnx._internal.exporter import _schemas
from torch.onnx._internal.exporter._registration import ONNXRegistry

from dy2st.tracing.replaced import replaced

_registries: dict[tuple[int, int, int], ONNXRegistry] = {}
_looked_up: set[str] = set()
_signature = functools.cache(_schemas.op_signature_from_function)


def reusing() -> AbstractContextManager[None]:
    """Within, torch's exporter gets copies of what was made before."""
    make = ONNXRegistry.__dict__["from_torchlib"].__func__
    ours = [
        (ONNXRegistry, "from_torchlib", staticmethod(_registry(make))),
        # Once for a file: none comes meanwhile.
        (export_utils, "_materialize_cpp_cia_ops", functools.cache(_look_up_operators)),
        (_schemas, "op_signature_from_function", _signature),
    ]
    return replaced(ours)


def _registry(make: Callable[..., ONNXRegistry]) -> Callable[..., ONNXRegistry]:
    """``ONNXRegistry.from_torchlib``, where translations for one file don't stay in the registry of the next."""

    def from_torchlib(opset_version: int = 18) -> ONNXRegistry:
        known = sum(len(each.overloads) + len(each.complex) for _, each in registration.default_registry.items())
        # A translation counts only if its operator is there, which a library may bring later.
        key = opset_version, known, len(torch._C._dispatch_get_all_op_names())
        if key not in _registries:
            _registries[key] = make(ONNXRegistry, opset_version=opset_version)
        registry = ONNXRegistry()
        registry._opset_version = opset_version
        registry.functions = {target: list(found) for target, found in _registries[key].functions.items()}
        return registry

    return from_torchlib


def _look_up_operators() -> None:
    """The same as torch's own, which goes through all operators for each of their thirty namespaces."""
    found: Any = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    for name in set(found) - _looked_up:
        namespace, _, operator = name.partition("::")
        packet, _, overload = operator.partition(".")
        getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
        _looked_up.add(name)
