"""Forms of a graph that a runtime's defects do not touch, where they cost nothing."""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import constant, op, recording


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


def vectors_as_matrices(model: ir.Model) -> None:
    """Multiply a vector as a matrix of one row or one column.

    onnxruntime 1.31 fuses a transposed matrix into a product with a vector as if it were not transposed, and leaves the
    product of nothing with a vector as it finds the memory.
    """
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "MatMul" or node.domain not in {"", "ai.onnx"}:
            continue
        left, right = node.inputs
        if left is None or right is None or left.shape is None or right.shape is None:
            continue
        axes = [-2] * (len(left.shape) == 1) + [-1] * (len(right.shape) == 1)
        if not axes:
            continue
        graph, out = node.graph, node.outputs[0]
        assert graph is not None
        nodes: list[ir.Node] = []
        inputs = [_with_axis(v, axis, f"{out.name}_{i}", nodes) for i, (v, axis) in enumerate(((left, 0), (right, 1)))]
        product = ir.Node("", "MatMul", inputs, version=node.version, name=node.name)
        product.outputs[0].type, product.outputs[0].name = out.type, f"{out.name}_matrix"
        dropped = _axes(axes, f"{out.name}_axes", nodes)
        back = ir.Node("", "Squeeze", [product.outputs[0], dropped], version=node.version)
        nodes += [product, back]
        for made in nodes:
            made.metadata_props.update(node.metadata_props)
        ir.convenience.replace_nodes_and_values(graph, node, [node], nodes, [out], back.outputs)


def matrices_of_no_batch(model: ir.Model, opset: int) -> None:
    """Multiply one matrix by a batch of none as a batch of none.

    onnxruntime 1.31 takes the larger of the two sizes one and none for that of the product.
    """
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "MatMul" or node.domain not in {"", "ai.onnx"} or node.graph is None:
            continue
        left, right = node.inputs
        if left is None or right is None or left.shape is None or right.shape is None:
            continue
        for place, one, many in ((0, left, right), (1, right, left)):
            # A batch times one matrix on the right is a product of two matrices.
            if len(one.shape or ()) >= 2 + place and _is_single(one, many):
                with recording(opset) as made:
                    wide = _in_batches(one, many)
                for count, each in enumerate(made.nodes):
                    each.outputs[0].name = f"{node.outputs[0].name}_batch_{place}_{count}"
                    each.metadata_props.update(node.metadata_props)
                node.graph.insert_before(node, made.nodes)
                node.replace_input_with(place, wide)


def _is_single(one: ir.Value, many: ir.Value) -> bool:
    """Whether a batch of a size that may be none meets no batch, or one of one."""
    sizes, others = (list(value.shape or ())[-3::-1] for value in (one, many))
    return any(not isinstance(other, int) and sizes[d : d + 1] in ([], [1]) for d, other in enumerate(others))


def _in_batches(one: ir.Value, many: ir.Value) -> ir.Value:
    """A matrix in as many batches as another one has, or in one if these are more."""
    assert many.shape is not None
    sizes = op("Min", op("Shape", many, start=0, end=len(many.shape) - 2), 1)
    wide = op("Expand", one, op("Concat", sizes, constant([1, 1]), axis=0))
    assert one.shape is not None
    wide.shape = ir.Shape([*[None] * (max(len(many.shape), len(one.shape)) - 2), *one.shape[-2:]])
    return wide


def _axes(axes: list[int], name: str, nodes: list[ir.Node]) -> ir.Value:
    made = ir.Node("", "Constant", [], attributes=[ir.AttrInt64s("value_ints", axes)])
    made.outputs[0].name, made.outputs[0].dtype = name, ir.DataType.INT64
    made.outputs[0].shape = ir.Shape([len(axes)])
    nodes.append(made)
    return made.outputs[0]


def _with_axis(value: ir.Value, axis: int, name: str, nodes: list[ir.Node]) -> ir.Value:
    """A vector as a matrix; what is one already stays as it is."""
    if value.shape is None or len(value.shape) != 1:
        return value
    made = ir.Node("", "Unsqueeze", [value, _axes([axis], f"{name}_axis", nodes)])
    made.outputs[0].name, made.outputs[0].type = f"{name}_row", value.type
    nodes.append(made)
    return made.outputs[0]
