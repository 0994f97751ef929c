"""Forms of a graph that a runtime's defects do not touch, where they cost nothing."""

from __future__ import annotations

import onnx_ir as ir


def positive_axes(model: ir.Model) -> None:
    """Count the axes of reductions from the front.

    onnxruntime 1.31 leaves an axis counted from the back unreduced when the tensor is empty.
    """
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if not node.op_type.startswith("Reduce") or len(node.inputs) == 1:
            continue
        data, axes = node.inputs[:2]
        if data is None or axes is None or data.shape is None:
            continue
        constant = ir.convenience.get_const_tensor(axes)
        if constant is None or not (constant.numpy() < 0).any():
            continue
        rank = len(data.shape)
        values = [int(a) % rank for a in constant.numpy().reshape(-1)]
        made = ir.Node("", "Constant", [], attributes=[ir.AttrInt64s("value_ints", values)])
        made.outputs[0].name = f"{node.name}_axes"
        made.outputs[0].dtype, made.outputs[0].shape = ir.DataType.INT64, ir.Shape([len(values)])
        graph = node.graph
        assert graph is not None
        graph.insert_before(node, made)
        node.replace_input_with(1, made.outputs[0])
