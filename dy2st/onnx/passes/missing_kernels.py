"""Nodes for which onnxruntime has no kernel: written with those it has, without a change of the result, or refused.

Integers are computed in a wider type and cut back, which gives the same bits. A bfloat16 is computed as float32 and
rounded once, as eager does. What exists for float32 only is written with other operators for float64, to full precision
(:mod:`dy2st.onnx.translations.float64`). Anything else is an error at the user's line: never a file that no runtime
loads.

float16 is left alone where ONNX has the operator for it: onnxruntime itself computes it as float32.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from dy2st.errors import Location, UntranslatedError
from dy2st.onnx.building import op, put_in_place, recording
from dy2st.onnx.passes.kernels import Types, has_kernel, is_valid, type_parameters
from dy2st.onnx.passes.source_lines import STACK, frames
from dy2st.onnx.translations.float64 import EXPANSIONS
from dy2st.onnx.translations.solvers import determinant

_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
_WIDER: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    ir.DataType.BOOL: (ir.DataType.UINT8, *_INTEGERS),
    ir.DataType.INT8: _INTEGERS,
    ir.DataType.UINT8: _INTEGERS,
    ir.DataType.INT16: _INTEGERS,
    ir.DataType.UINT16: _INTEGERS,
    ir.DataType.INT32: (ir.DataType.INT64,),
    ir.DataType.UINT32: (ir.DataType.INT64,),
    ir.DataType.BFLOAT16: (ir.DataType.FLOAT,),
    ir.DataType.FLOAT16: (ir.DataType.FLOAT,),
}

# What these give depends on the width: they shift, wrap round or quantise.
_WIDTH_MATTERS = frozenset(("BitShift", "Pow", "Cast", "QuantizeLinear", "DequantizeLinear", "BitwiseNot"))


def replace_missing_kernels(model: ir.Model, opset: int) -> None:
    """Make every node of the model one that onnxruntime computes.

    Raises:
        UntranslatedError: there is no kernel for a node's dtype, nor another way to its result.
    """
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        types = type_parameters(node, opset)
        if types is None or _computes(node.op_type, opset, types):
            continue
        _replace(node, opset, types)


_EXPANSIONS: dict[str, Callable[..., ir.Value]] = {**EXPANSIONS, "Det": determinant}
# Kernels that are there and wrong: onnxruntime 1.31 passes over NaN here.
_WRONG = {("LogSoftmax", ir.DataType.DOUBLE)}


def _computes(kind: str, opset: int, types: Types) -> bool:
    if not is_valid(kind, opset, types) or any((kind, dtype) in _WRONG for dtype in types.values()):
        return False
    if has_kernel(kind, opset, types):
        return True
    # onnxruntime puts casts to float32 around such a node when it loads the file.
    return has_kernel(kind, opset, _with(types, ir.DataType.FLOAT16, ir.DataType.FLOAT))


def _with(types: Types, narrow: ir.DataType, wide: ir.DataType) -> dict[str, ir.DataType]:
    return {name: wide if dtype == narrow else dtype for name, dtype in types.items()}


def _replace(node: ir.Node, opset: int, types: Types) -> None:
    for narrow in sorted(set(types.values())):
        if node.op_type in _WIDTH_MATTERS and narrow not in {ir.DataType.BFLOAT16, ir.DataType.FLOAT16}:
            continue
        for wide in _WIDER.get(narrow, ()):
            if _computes(node.op_type, opset, _with(types, narrow, wide)):
                _widen(node, narrow, wide)
                return
    chooses = node.op_type == "Where" and types.get("T") == ir.DataType.BOOL
    expansion: Callable[..., ir.Value] | None = _chosen if chooses else _EXPANSIONS.get(node.op_type)
    if expansion is not None:
        with recording(opset) as recorder:
            made = expansion(*node.inputs, **{name: each.value for name, each in node.attributes.items()})
        put_in_place(node, recorder.nodes, [made])
        return
    refuse(node, types)


def _chosen(test: ir.Value, one: ir.Value, other: ir.Value) -> ir.Value:
    """``Where`` of flags."""
    return op("Or", op("And", test, one), op("And", op("Not", test), other))


def refuse(node: ir.Node, types: Types) -> None:
    """Say that onnxruntime can't compute a node.

    Raises:
        UntranslatedError: always, at the user's line.
    """
    dtypes = sorted({dtype.name.lower() for dtype in types.values() if dtype != ir.DataType.BOOL})
    others = "float32" if {"double", "bfloat16"} & set(dtypes) else "float32 or int64"
    found = frames(node.metadata_props.get(STACK, ""))
    raise UntranslatedError(
        f"onnxruntime has no implementation of {node.op_type} for {' and '.join(dtypes)}",
        hint=f"convert the values to {others} for this operation",
        location=Location(*found[-1]) if found else None,
    )


def _widen(node: ir.Node, narrow: ir.DataType, wide: ir.DataType) -> None:
    """Compute a node on casts to ``wide``, and cast what it gives back."""
    nodes = []

    def cast(value: ir.Value | None, dtype: ir.DataType) -> ir.Value | None:
        if value is None or value.dtype != (narrow if dtype == wide else wide):
            return value
        made = ir.Node("", "Cast", [value], attributes=[ir.AttrInt64("to", int(dtype))], version=node.version)
        made.outputs[0].dtype, made.outputs[0].shape = dtype, value.shape
        nodes.append(made)
        return made.outputs[0]

    inputs = [cast(value, wide) for value in node.inputs]
    attributes = [
        ir.AttrInt64("dtype", int(wide)) if name == "dtype" and attribute.value == int(narrow) else attribute
        for name, attribute in node.attributes.items()
    ]
    computed = ir.Node(
        node.domain,
        node.op_type,
        inputs,
        attributes=attributes,
        num_outputs=len(node.outputs),
        version=node.version,
        name=node.name,
    )
    nodes.append(computed)
    for old, new in zip(node.outputs, computed.outputs, strict=True):
        new.type, new.shape = ir.TensorType(wide) if old.dtype == narrow else old.type, old.shape
    narrowed = [
        (cast(new, narrow) or new) if old.dtype == narrow else new
        for old, new in zip(node.outputs, computed.outputs, strict=True)
    ]
    put_in_place(node, nodes, narrowed)
