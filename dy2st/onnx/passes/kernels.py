"""Which operators onnxruntime's CPU provider computes, and for which dtypes.

onnxruntime lists the kernels it registers; ``has_kernel`` looks one up as onnxruntime does when it loads a file.

Source: ``KernelRegistry::TryFindKernel`` of onnxruntime 1.31, and ONNX's operator schemas.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import onnx
import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import is_onnx

_NO_END = 2**31 - 1
_NAMES = {
    ir.DataType[name.upper()]: f"tensor({name})"
    for name in "float double float16 bfloat16 int64 int32 int16 int8 uint8 uint16 uint32 uint64 bool".split()
}

# Operators whose definition uses others that exist for float32 only.
_BY_FLOAT32_OPERATORS = frozenset(("HardSwish", "Mish"))

Types = Mapping[str, ir.DataType]


@functools.cache
def _registered() -> dict[str, list[tuple[int, int, dict[str, frozenset[str]]]]]:
    """The kernels of the CPU provider by operator: first and last version, and the dtypes of each type parameter."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found: dict[str, list[tuple[int, int, dict[str, frozenset[str]]]]] = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and kernel.domain == "":
            first, last = kernel.version_range
            types = {name: frozenset(allowed) for name, allowed in kernel.type_constraints.items()}
            found.setdefault(kernel.op_name, []).append((first, last, types))
    return found


@functools.cache
def _schema(kind: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(kind, opset)
    except onnx.defs.SchemaError:
        return None


def schema_of(node: ir.Node, opset: int) -> onnx.defs.OpSchema | None:
    """The schema of a node's operator, if it is ONNX's own."""
    return _schema(node.op_type, opset) if is_onnx(node) else None


def type_parameters(node: ir.Node, opset: int) -> dict[str, ir.DataType] | None:
    """The dtype that each type parameter of a node's operator takes, by the parameter's name and by the operand's.

    Strings, sequences and the like are left out. None if the operator is not ONNX's own.
    """
    schema = schema_of(node, opset)
    if schema is None:
        return None
    types: dict[str, ir.DataType] = {}
    for formals, actuals in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        for formal, actual in zip(stretched(formals, len(actuals)), actuals, strict=False):
            if actual is not None and actual.dtype in _NAMES and isinstance(actual.type, ir.TensorType):
                types.setdefault(formal.type_str, actual.dtype)
                types.setdefault(formal.name, actual.dtype)
    return types


def stretched(
    formals: Sequence[onnx.defs.OpSchema.FormalParameter], count: int
) -> list[onnx.defs.OpSchema.FormalParameter]:
    """The parameters of ``count`` operands: the last one of a variadic operator stands for all further ones."""
    return [*formals, *[formals[-1]] * (count - len(formals))] if formals else []


def is_valid(kind: str, opset: int, types: Types) -> bool:
    """Whether ONNX itself allows an operator for these dtypes."""
    schema = _schema(kind, opset)
    if schema is None:
        return True
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    return all(_NAMES[dtype] in allowed[name] for name, dtype in types.items() if name in allowed)


def has_kernel(kind: str, opset: int, types: Types) -> bool:
    """Whether onnxruntime computes an operator of ONNX for these dtypes."""
    schema = _schema(kind, opset)
    if schema is None:
        return True
    if kind == "Constant":
        return True  # onnxruntime reads it when it loads a file
    since = schema.since_version
    kernels = _registered().get(kind, [])
    for first, last, constraints in kernels:
        if first != since and not (first < since <= last != _NO_END):
            continue
        if all(_NAMES[types[name]] in allowed for name, allowed in constraints.items() if name in types):
            return True
    # Without a kernel onnxruntime takes the operator's definition by simpler operators, if it has one.
    defined = schema.has_function or schema.has_context_dependent_function  # type: ignore[attr-defined]
    if kernels or not defined:
        return False
    return kind not in _BY_FLOAT32_OPERATORS or not {ir.DataType.DOUBLE, ir.DataType.BFLOAT16} & set(types.values())
