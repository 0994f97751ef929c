"""Dtypes of values, settled: what a node gives follows from what it takes, and a number takes its tensor's dtype.

torch's exporter declares every Python float that the graph computes as float32, whatever the tensor was that it was
read from, and hands it to operators as it is. ONNX wants operands of one dtype.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from dy2st.onnx.passes.kernels import schema_of, stretched

_FLOATS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)


def settle_dtypes(model: ir.Model, opset: int) -> None:
    """Correct the declared dtypes of a graph without functions, and cast numbers to the dtype of their tensors."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        schema = schema_of(node, opset)
        if schema is None or any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
            continue
        bound = _bound(node, schema)
        formals = stretched(schema.outputs, len(node.outputs))
        for formal, out in zip(formals, node.outputs, strict=False):
            dtype = bound.get(formal.type_str)
            if dtype is not None and out.dtype != dtype:
                out.dtype = dtype


def _bound(node: ir.Node, schema: onnx.defs.OpSchema) -> dict[str, ir.DataType]:
    """The dtype of each type parameter by the node's inputs, which are cast where they disagree."""
    groups: dict[str, list[int]] = {}
    for index, (formal, value) in enumerate(zip(stretched(schema.inputs, len(node.inputs)), node.inputs, strict=False)):
        if value is not None and value.dtype is not None and isinstance(value.type, ir.TensorType):
            homogeneous = formal.is_homogeneous or formal.option != onnx.defs.OpSchema.FormalParameterOption.Variadic
            if homogeneous:
                groups.setdefault(formal.type_str, []).append(index)
    bound = {}
    for parameter, places in groups.items():
        dtypes = {node.inputs[i].dtype for i in places}  # type: ignore[union-attr]
        if len(dtypes) > 1 and not _agree(node, places):
            continue
        bound[parameter] = node.inputs[places[0]].dtype  # type: ignore[union-attr]
    return bound  # type: ignore[return-value]


def _agree(node: ir.Node, places: list[int]) -> bool:
    """Cast the 0-d floats among some inputs to the dtype of the others."""
    values = {i: node.inputs[i] for i in places}
    numbers = [
        i
        for i, v in values.items()
        if v is not None and v.shape is not None and not len(v.shape) and v.dtype in _FLOATS
    ]
    tensors = [v for i, v in values.items() if i not in numbers] or [
        values[max(numbers, key=lambda i: _width(values[i]))]
    ]
    dtypes = {v.dtype for v in tensors if v is not None}
    if len(dtypes) != 1:
        return False
    (dtype,) = dtypes
    graph = node.graph
    if dtype not in _FLOATS or graph is None:
        return False
    for i in numbers:
        value = values[i]
        assert value is not None
        if value.dtype == dtype:
            continue
        cast = ir.Node("", "Cast", [value], attributes=[ir.AttrInt64("to", int(dtype))], version=node.version)
        made = cast.outputs[0]
        made.name, made.dtype, made.shape = f"{node.outputs[0].name}_number_{i}", dtype, value.shape
        cast.metadata_props.update(node.metadata_props)
        graph.insert_before(node, cast)
        node.replace_input_with(i, made)
    return True


def _width(value: ir.Value | None) -> int:
    return _FLOATS.index(value.dtype) if value is not None and value.dtype in _FLOATS else -1
