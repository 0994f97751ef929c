"""What torch's exporter makes anew for every file, though it is the same every time.

It parses the source of all its translations (five hundred functions), reads the signatures of ours, looks all
operators up, and says for each of two thousand how it is decomposed. For a small model that is most of an export. Here
it is made once in a process, and again when something was registered meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from onnxscript.function_libs.torch_lib import registration
from torch._export import utils as export_utils
from torch.onnx._internal.exporter import _decomp, _schemas
from torch.onnx._internal.exporter._registration import ONNXRegistry

from dy2st.onnx.passes.kept_kernels import operators_known
from dy2st.tracing.replaced import replaced

# Other names of operators, which torch's exporter translates as they stand: it makes no operands of one dtype for them,
# and so divides integers as integers. Without a translation they are decomposed to what they stand for.
ALIASES = frozenset(
    "concat concatenate divide greater greater_equal less less_equal multiply special_erf special_erfc special_expm1 "
    "special_log_softmax special_sinc special_softmax subtract true_divide".split()
)

_registries: dict[Any, ONNXRegistry] = {}
_looked_up: set[str] = set()
_schemas_signature = _schemas.op_signature_from_function
_decompositions: dict[Any, dict[Any, Any]] = {}


def reusing() -> AbstractContextManager[None]:
    """Within, torch's exporter gets copies of what was made before."""
    make = ONNXRegistry.__dict__["from_torchlib"].__func__
    ours = [
        (ONNXRegistry, "from_torchlib", staticmethod(_registry(make))),
        (_decomp, "create_onnx_friendly_decomposition_table", _table(_decomp.create_onnx_friendly_decomposition_table)),
        # Once for a file: none comes meanwhile.
        (export_utils, "_materialize_cpp_cia_ops", functools.cache(_look_up_operators)),
        (_schemas, "op_signature_from_function", _signature),
    ]
    return replaced(ours)


@functools.lru_cache(maxsize=4096)
def _signature_or_error(*args: Any, **kwargs: Any) -> Any:
    try:
        return _schemas_signature(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - what it raises is raised again, without the frames that it holds
        return f"{type(error).__name__}: {error}"


def _signature(*args: Any, **kwargs: Any) -> Any:
    """``op_signature_from_function``; most of our translations have none, since they take functions or lists."""
    found = _signature_or_error(*args, **kwargs)
    if isinstance(found, str):
        raise TypeError(found)
    return found


def _table(make: Callable[[Any], dict[Any, Any]]) -> Callable[[Any], dict[Any, Any]]:
    """``create_onnx_friendly_decomposition_table``, a copy for each file."""

    def create_onnx_friendly_decomposition_table(onnx_registered_ops: Any) -> dict[Any, Any]:
        # A decomposition may be registered, or put in another's place.
        torchs = torch._decomp.decomposition_table
        key = frozenset(onnx_registered_ops), frozenset(torchs.items()), operators_known()
        if key not in _decompositions:
            _decompositions.clear()
            _decompositions[key] = make(onnx_registered_ops)
        return dict(_decompositions[key])

    return create_onnx_friendly_decomposition_table


def _registry(make: Callable[..., ONNXRegistry]) -> Callable[..., ONNXRegistry]:
    """``ONNXRegistry.from_torchlib``, where translations for one file don't stay in the registry of the next."""

    def from_torchlib(opset_version: int = 18) -> ONNXRegistry:
        known = sum(len(each.overloads) + len(each.complex) for _, each in registration.default_registry.items())
        # A translation counts only if its operator is there, which a library may bring later.
        key = opset_version, known, operators_known()
        if key not in _registries:
            made = _registries[key] = make(ONNXRegistry, opset_version=opset_version)
            made.functions = {target: found for target, found in made.functions.items() if not is_alias(found)}
        registry = ONNXRegistry()
        registry._opset_version = opset_version
        registry.functions = {target: list(found) for target, found in _registries[key].functions.items()}
        return registry

    return from_torchlib


def is_alias(translations: Any) -> bool:
    """Whether what a registry has is the translations of an alias."""
    target = translations[0].fx_target
    return isinstance(target, torch._ops.OpOverload) and target._schema.name.partition("::")[2] in ALIASES


def _look_up_operators() -> None:
    """The same as torch's own, which goes through all operators for each of their thirty namespaces."""
    found: Any = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    for name in set(found) - _looked_up:
        namespace, _, operator = name.partition("::")
        packet, _, overload = operator.partition(".")
        getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
        _looked_up.add(name)
