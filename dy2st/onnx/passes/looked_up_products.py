"""In a loop, an embedding that is only multiplied by weights is looked up in a table of the products.

Before::

    row = Gather(table, token)                  # table: [tokens, width]
    product = MatMul(row, weights)              # [batch, outputs]
    key = Add(product, bias)

After::

    key = Gather(products, token)               # products: [tokens, outputs]

``Gemm`` is a product and a sum, too. It is done for products of few numbers, which the file has in it, and only in a
loop, where it saves a product in each trip. A product may be rounded otherwise: it is computed in double precision when
the file is written.
Source: strength reduction, Aho, Lam, Sethi, Ullman, "Compilers", 2006, section 9.1.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.loop_invariants import nodes_in_loops

# Numbers of the table of products: 256 kB of float32.
MOST_NUMBERS = 65536


def look_up_products(model: ir.Model, opset: int) -> None:
    """Write such products so; in place, in the bodies of loops."""
    for node in nodes_in_loops(model.graph):
        if node.op_type in {"MatMul", "Gemm"} and is_onnx(node):
            _look_up(node, opset)


def _look_up(node: ir.Node, opset: int) -> None:
    found = _table_and_places(node.inputs[0])
    weights = _numbers(node.inputs[1], dims=2)
    if found is None or weights is None or _is_changed(node):
        return
    table, places = found
    turned = "transB" in node.attributes and bool(node.attributes["transB"].as_int())
    weights = weights.T if turned else weights
    if table.dtype != weights.dtype or len(table) * weights.shape[1] > MOST_NUMBERS:
        return
    with np.errstate(all="ignore"):
        products = table.astype(np.float64) @ weights.astype(np.float64)
    last = node
    added = _numbers(node.inputs[2], dims=1) if len(node.inputs) > 2 and node.inputs[2] is not None else None
    if len(node.inputs) > 2 and node.inputs[2] is not None and added is None:
        return
    if node.op_type == "MatMul":
        following, added = _added(node)
        last = following or node
    with np.errstate(all="ignore"):
        products = (products if added is None else products + added.astype(np.float64)).astype(table.dtype)
    with recording(opset) as made:
        kept = op("Constant", value=ir.tensor(products), dtype=node.outputs[0].dtype)
        kept.shape = ir.Shape(list(products.shape))
        value = op("Gather", kept, places, axis=0)
    value.shape = last.outputs[0].shape
    put_in_place(last, made.nodes, [value])
    if last is not node and node.graph is not None:
        node.graph.remove(node, safe=True)


def _table_and_places(value: ir.Value | None) -> tuple[np.ndarray, ir.Value] | None:
    """The table that rows are looked up in, and where."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "Gather" or not is_onnx(node):
        return None
    if "axis" in node.attributes and node.attributes["axis"].as_int():
        return None
    table, places = _numbers(node.inputs[0], dims=2), node.inputs[1]
    constant = ir.convenience.get_const_tensor(places) if places is not None else None
    return None if table is None or places is None or constant is not None else (table, places)


def _added(node: ir.Node) -> tuple[ir.Node | None, np.ndarray | None]:
    """The ``Add`` of a row of weights that is all that reads a product, and that row."""
    uses = list(node.outputs[0].uses())
    following = uses[0].node if len(uses) == 1 and not node.outputs[0].is_graph_output() else None
    if following is None or following.op_type != "Add" or not is_onnx(following) or following.graph is not node.graph:
        return None, None
    row = _numbers(following.inputs[1 - uses[0].idx], dims=1)
    weights = node.inputs[1]
    size = weights.shape[1] if weights is not None and weights.shape is not None else None
    return (following, row) if row is not None and len(row) in {1, size} else (None, None)


def _is_changed(node: ir.Node) -> bool:
    """Whether a ``Gemm`` does more than to multiply and to add."""
    factors = (node.attributes[name].as_float() for name in ("alpha", "beta") if name in node.attributes)
    return any(each != 1 for each in factors) or (
        "transA" in node.attributes and bool(node.attributes["transA"].as_int())
    )


def _numbers(value: ir.Value | None, dims: int) -> np.ndarray | None:
    """The floats of a constant with so many dimensions."""
    found = ir.convenience.get_const_tensor(value) if value is not None else None
    if found is None or found.dtype not in {FLOAT, DOUBLE} or len(found.shape) != dims:
        return None
    return found.numpy()
