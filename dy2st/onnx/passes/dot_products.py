"""The product of two vectors is a sum of products.

Before::

    y = MatMul(u, v)                            # u, v: [n]

After::

    products = Mul(u, v)
    y = ReduceSum<keepdims = 0>(products)

onnxruntime 1.31 leaves the product of nothing with nothing as it finds the memory, so that a file has vectors of
unknown size as matrices there, in four nodes. Of a thousand numbers on, one row times one column takes it twice as
long as this, and of 100,000 numbers six times. Few numbers of a fixed size stay as they are, where the product stays a
single node. The sum may be rounded otherwise.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, INT32, INT64, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx, same_shape

# So many numbers are multiplied as fast by one node.
FEW = 128
# What onnxruntime sums.
_SUMMED = frozenset((FLOAT, DOUBLE, INT32, INT64))


def sum_dot_products(model: ir.Model, opset: int) -> None:
    """Write such products so; in place, subgraphs included."""
    turning = {id(node.graph) for node in model.graph.all_nodes() if node.op_type == "Transpose"}
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "MatMul" or not is_onnx(node) or node.outputs[0].dtype not in _SUMMED:
            continue
        left, right = node.inputs
        if left is None or right is None or left.shape is None or len(left.shape) != 1 or not same_shape(left, right):
            continue
        size = left.shape[0]
        if isinstance(size, int) and 0 < size <= FEW and id(node.graph) not in turning:
            continue
        with recording(opset) as made:
            products = op("Mul", left, right)
            found = op("ReduceSum", products, keepdims=0)
        products.shape, found.shape = left.shape, ir.Shape([])
        put_in_place(node, made.nodes, [found])
