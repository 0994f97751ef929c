"""Forms of a graph that a runtime's defects do not touch, where they cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import op, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx

# The elements of a vector that a matrix is multiplied by as fast as by one column.
SHORT = 8


def positive_axes(model: ir.Model) -> None:
    """Count the axes of reductions from the front; a number has none.

    onnxruntime 1.31 leaves an axis counted from the back unreduced when the tensor is empty.
    """
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if not node.op_type.startswith("Reduce") or len(node.inputs) == 1:
            continue
        data, axes = node.inputs[:2]
        if data is None or axes is None or data.shape is None:
            continue
        if not len(data.shape):  # torch takes 0 and -1 for a number's dimension; ONNX knows none
            node.resize_inputs(1)
            continue
        constant = ir.convenience.get_const_tensor(axes)
        if constant is None or not (constant.numpy() < 0).any():
            continue
        values = [int(a) % len(data.shape) for a in constant.numpy().reshape(-1)]
        made: list[ir.Node] = []
        node.replace_input_with(1, _axes(values, f"{node.name}_axes", made))
        assert node.graph is not None
        node.graph.insert_before(node, made)


def vectors_as_matrices(model: ir.Model, filled: AbstractSet[str] = frozenset()) -> None:
    """Multiply a vector as a matrix of one row or one column.

    onnxruntime 1.31 fuses a transposed matrix into a product with a vector as if it were not transposed, and leaves the
    product of nothing with a vector as it finds the memory. So a vector stays one in a graph without a ``Transpose``,
    which onnxruntime might move, if it has some elements: ``filled`` are the names of sizes that are never zero.

    A matrix times a vector takes onnxruntime as long as a product of matrices, and times one column a tenth of that
    (64 rows). So a vector on the right of a matrix is a column but where it has few elements.
    """
    turning = {id(node.graph) for node in model.graph.all_nodes() if node.op_type == "Transpose"}
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "MatMul" or not is_onnx(node):
            continue
        left, right = node.inputs
        if left is None or right is None or left.shape is None or right.shape is None:
            continue
        axes = [-2] * (len(left.shape) == 1) + [-1] * (len(right.shape) == 1)
        stays = id(node.graph) not in turning and _has_terms(left, right, filled)
        # A batch that may be none is mended by the next pass, for matrices.
        stays = stays and not any(_emptied((), shape[:-2], filled) for shape in (left.shape, right.shape))
        if not axes or (stays and (len(left.shape) == 1 or is_short(right))):
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


def _has_terms(left: ir.Value, right: ir.Value, filled: AbstractSet[str]) -> bool:
    """Whether the elements of a product are known to be sums of one term at least."""
    inner = [shape[max(axis, -len(shape))] for shape, axis in ((left.shape, -1), (right.shape, -2)) if shape]
    return any(size > 0 if isinstance(size, int) else size.value in filled for size in inner)


def is_short(vector: ir.Value) -> bool:
    """Whether a vector has few elements, and a fixed number of them."""
    size = vector.shape[0] if vector.shape is not None else None
    return isinstance(size, int) and size <= SHORT


def matrices_of_no_batch(model: ir.Model, opset: int, filled: AbstractSet[str]) -> None:
    """Multiply one matrix by a batch that may be none as no matrix in that case.

    onnxruntime 1.31 takes the larger of the sizes one and none for that of the product. A ``Slice`` up to the other
    batch's size has one matrix of one, or none: two small nodes, and no copies of the matrix for the batch. Nothing is
    written where the batch has a fixed size or one of ``filled``, the names of sizes that are never zero.
    """
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "MatMul" or not is_onnx(node) or node.graph is None:
            continue
        left, right = node.inputs
        if left is None or right is None or left.shape is None or right.shape is None:
            continue
        for place, one, many in ((0, left, right), (1, right, left)):
            axes = _emptied((one.shape or ())[:-2], (many.shape or ())[:-2], filled)
            # A batch times one matrix on the right is a product of two matrices.
            if not axes or (place == 1 and all(size == 1 for size in list(one.shape or ())[:-2])):
                continue
            with recording(opset) as made:
                few = _of_batch(one, many, axes)
            for count, each in enumerate(made.nodes):
                each.outputs[0].name = f"{node.outputs[0].name}_batch_{place}_{count}"
                each.metadata_props.update(node.metadata_props)
            node.graph.insert_before(node, made.nodes)
            node.replace_input_with(place, few)


def scaled_products(model: ir.Model) -> None:
    """Keep a factor of doubles apart from the product of matrices that it is for, by a dimension that comes and goes.

    onnxruntime 1.31 makes one node of a product and its factor, which is a single there.
    """
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        out = node.outputs[0]
        if node.op_type not in ("Mul", "Div") or not is_onnx(node) or out.dtype != ir.DataType.DOUBLE:
            continue
        for position in (1,) if node.op_type == "Div" else (0, 1):
            factor, other = node.inputs[position], node.inputs[1 - position]
            number = None if factor is None else ir.convenience.get_const_tensor(factor)
            if number is None or number.size != 1 or not _needs_digits(node.op_type, float(number.numpy().item())):
                continue
            if other is not None and other.shape is not None and (_is_product(other) or _is_multiplied(out)):
                _set_apart(node, 1 - position, other)
                break


def _set_apart(node: ir.Node, position: int, other: ir.Value) -> None:
    """Give an operand of a node one dimension more, and take it from the result."""
    graph, out = node.graph, node.outputs[0]
    assert graph is not None
    nodes: list[ir.Node] = []
    axes = _axes([0], f"{out.name}_axes", nodes)
    apart = ir.Node("", "Unsqueeze", [other, axes], version=node.version)
    inputs = list(node.inputs)
    inputs[position] = apart.outputs[0]
    scaled = ir.Node("", node.op_type, inputs, version=node.version, name=node.name)
    back = ir.Node("", "Squeeze", [scaled.outputs[0], axes], version=node.version)
    apart.outputs[0].name, scaled.outputs[0].name = f"{out.name}_apart", f"{out.name}_scaled"
    apart.outputs[0].type = scaled.outputs[0].type = out.type
    assert other.shape is not None
    apart.outputs[0].shape = ir.Shape([1, *other.shape])
    scaled.outputs[0].shape = None if out.shape is None else ir.Shape([1, *out.shape])
    nodes += [apart, scaled, back]
    for made in nodes:
        made.metadata_props.update(node.metadata_props)
    ir.convenience.replace_nodes_and_values(graph, node, [node], nodes, [out], back.outputs)


def _needs_digits(kind: str, number: float) -> bool:
    """Whether a factor, or a divisor's inverse, is no single."""
    if kind == "Div":
        number = 1 / number if number else number
    return float(np.float32(number)) != number


def _is_product(value: ir.Value) -> bool:
    """Whether a value is a product of matrices, perhaps transposed."""
    made = value.producer()
    if made is not None and made.op_type in ("Transpose", "Identity") and made.inputs[0] is not None:
        return _is_product(made.inputs[0])
    return made is not None and made.op_type == "MatMul"


def _is_multiplied(value: ir.Value) -> bool:
    """Whether a value is an operand of a product of matrices, perhaps transposed."""
    return any(
        user.op_type == "MatMul" or (user.op_type in ("Transpose", "Identity") and _is_multiplied(user.outputs[0]))
        for user, _ in value.uses()
    )


def _emptied(sizes: Sequence[object], others: Sequence[object], filled: AbstractSet[str]) -> list[int]:
    """The dimensions, counted from the last one of the batch, where one matrix meets a batch that may be none."""
    return [
        d
        for d in range(-len(others), 0)
        if not isinstance(others[d], int) and str(others[d]) not in filled and (-d > len(sizes) or sizes[d] == 1)
    ]


def _of_batch(one: ir.Value, many: ir.Value, axes: list[int]) -> ir.Value:
    """A matrix as a batch of one, or of none where the other batch is none."""
    assert one.shape is not None
    assert many.shape is not None
    dims, lacking = len(many.shape), -axes[0] - (len(one.shape) - 2)
    sizes: list[int | ir.SymbolicDim | None] = [*[1] * lacking, *one.shape]
    few = op("Unsqueeze", one, list(range(lacking))) if lacking > 0 else one
    for axis in axes:
        place = dims - 2 + axis
        end = op("Shape", many, start=place, end=place + 1)
        few = op("Slice", few, [0], end, [len(sizes) - 2 + axis])
        sizes[axis - 2] = None
    few.shape = ir.Shape(sizes)
    return few


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
    narrowed = value.producer()
    wide = narrowed.inputs[0] if narrowed is not None and narrowed.op_type == "Squeeze" else None
    if narrowed is not None and wide is not None and wide.shape is not None and len(wide.shape) == 2:
        taken = constant_integers(narrowed.inputs[1]) if len(narrowed.inputs) == 2 else None
        if wide.shape[axis] == 1 and taken in ([axis], [axis - 2]):
            return wide
    made = ir.Node("", "Unsqueeze", [value, _axes([axis], f"{name}_axis", nodes)])
    made.outputs[0].name, made.outputs[0].type = f"{name}_row", value.type
    made.outputs[0].shape = ir.Shape([1, *value.shape] if axis == 0 else [*value.shape, 1])
    nodes.append(made)
    return made.outputs[0]
