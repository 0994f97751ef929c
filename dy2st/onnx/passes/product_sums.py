"""A product of two matrices and a sum are one ``Gemm``, and so are sums of two of these.

Before::

    product = MatMul(x, w)                      # x: [batch, inputs], w: [inputs, outputs]
    y = Add(product, b)                         # b: [outputs], or [batch, outputs]

After::

    y = Gemm(x, w, b)

Before::

    from_x = Gemm(x, w, b)
    from_h = Gemm(h, u, c)                      # b, c: weights
    sum = Add(from_x, from_h)

After::

    from_x = Gemm(x, w, b + c)
    sum = Gemm(h, u, from_x)

onnxruntime does the first by itself when it loads a file. Sums may be rounded otherwise.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx, same_shape, same_size


def multiply_and_add(model: ir.Model, opset: int) -> None:
    """Write such sums so; in place, subgraphs included."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "Add" and is_onnx(node) and node.graph is not None:
            _ = _joined(node, opset) or _of_product(node, opset)


def _of_product(node: ir.Node, opset: int) -> bool:
    """Write a sum with a product as one node; whether it is one."""
    out = node.outputs[0]
    for place in (0, 1):
        product, other = _read_here(node.inputs[place], node, "MatMul"), node.inputs[1 - place]
        if product is None or other is None or not _are_matrices(product) or not _is_row(other, product):
            continue
        with recording(opset) as made:
            value = op("Gemm", *product.inputs, other)
        value.shape = product.outputs[0].shape if out.shape is None else out.shape
        _replace(node, made.nodes, value, product)
        return True
    return False


def _joined(node: ir.Node, opset: int) -> bool:
    """Write a sum of two products with weights added as one that is added to the other; whether it is one."""
    first, second = (_read_here(value, node, "Gemm") for value in node.inputs)
    if first is None or second is None or first is second or not same_shape(first.outputs[0], second.outputs[0]):
        return False
    if not (_is_plain(first) and _is_plain(second)):
        return False
    rows = [_weights(gemm.inputs[2]) if len(gemm.inputs) > 2 else None for gemm in (first, second)]
    if any(len(gemm.inputs) > 2 and row is None for gemm, row in zip((first, second), rows, strict=True)):
        return False
    known = [row for row in rows if row is not None]
    if len(known) == 2 and known[0].shape != known[1].shape:
        return False
    attributes = [{name: each.value for name, each in gemm.attributes.items()} for gemm in (first, second)]
    with recording(opset) as made:
        added = []
        if known:
            total = known[0] if len(known) == 1 else known[0] + known[1]
            added = [op("Constant", value=ir.tensor(total), dtype=node.outputs[0].dtype)]
            added[0].shape = ir.Shape(list(total.shape))
        inner = op("Gemm", *first.inputs[:2], *added, **attributes[0])
        value = op("Gemm", *second.inputs[:2], inner, **attributes[1])
    inner.shape, value.shape = first.outputs[0].shape, node.outputs[0].shape
    _replace(node, made.nodes, value, first, second)
    return True


def _replace(node: ir.Node, nodes: list[ir.Node], value: ir.Value, *gone: ir.Node) -> None:
    put_in_place(node, nodes, [value])
    for each in gone:
        assert each.graph is not None
        each.graph.remove(each, safe=True)


def _read_here(value: ir.Value | None, node: ir.Node, kind: str) -> ir.Node | None:
    """The node of a kind in the graph of another one, which alone reads its result."""
    made = value.producer() if value is not None else None
    if made is None or value is None or made.op_type != kind or not is_onnx(made) or made.graph is not node.graph:
        return None
    return made if len(value.uses()) == 1 and not value.is_graph_output() else None


def _are_matrices(product: ir.Node) -> bool:
    """Whether two matrices are multiplied whose elements are sums of one term at least."""
    left, right = product.inputs
    if left is None or right is None or left.shape is None or right.shape is None:
        return False
    if product.outputs[0].dtype not in {FLOAT, DOUBLE} or len(left.shape) != 2 or len(right.shape) != 2:
        return False
    return any(isinstance(size, int) and size > 0 for size in (left.shape[1], right.shape[0]))


def _is_row(value: ir.Value, product: ir.Node) -> bool:
    """Whether a value is added to each row of a product, or has its shape."""
    out, right = product.outputs[0], product.inputs[1]
    if same_shape(value, out):
        return True
    assert right is not None
    assert right.shape is not None
    return value.shape is not None and len(value.shape) == 1 and same_size(value.shape[0], right.shape[1])


def _is_plain(gemm: ir.Node) -> bool:
    """Whether nothing is scaled."""
    return all(gemm.attributes[name].as_float() == 1 for name in ("alpha", "beta") if name in gemm.attributes)


def _weights(value: ir.Value | None) -> np.ndarray | None:
    """A constant row of floats."""
    found = ir.convenience.get_const_tensor(value) if value is not None else None
    if found is None or found.dtype not in {FLOAT, DOUBLE} or len(found.shape) != 1:
        return None
    return found.numpy()
