"""Rows that are put together of numbers, and a matrix of these rows, are all numbers in a row in the matrix's shape.

Before, for ``torch.stack([torch.stack([a, b]), torch.stack([c, d])])``::

    first = Unsqueeze(Concat<axis = 0>(a, b), [0])          # a, b, c, d: [1]
    second = Unsqueeze(Concat<axis = 0>(c, d), [0])
    matrix = Concat<axis = 0>(first, second)

After::

    numbers = Concat<axis = 0>(a, b, c, d)
    matrix = Reshape(numbers, [2, 2])
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx


def stack_at_once(model: ir.Model, opset: int) -> None:
    """Write such matrices so; in place, subgraphs included, inner rows first."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if _is_join(node) and node.graph is not None:
            _flatten(node, opset)


def _flatten(node: ir.Node, opset: int) -> None:
    rows = [_row(value, node) for value in node.inputs]
    joins = [row[1] for row in rows if row is not None]
    if len(joins) < len(rows) or len(joins) < 2:
        return
    sizes = [_sizes(join.outputs[0]) for join in joins]
    if sizes[0] is None or 0 in sizes[0] or any(each != sizes[0] for each in sizes):
        return
    with recording(opset) as made:
        flat = op("Concat", *(part for join in joins for part in join.inputs), axis=0)
        flat.shape = ir.Shape([len(joins) * sizes[0][0], *sizes[0][1:]])
        value = op("Reshape", flat, [len(joins), *sizes[0]])
    value.shape = ir.Shape([len(joins), *sizes[0]])
    put_in_place(node, made.nodes, [value])
    for row in rows:
        for gone in row or ():
            if gone.graph is not None:
                gone.graph.remove(gone, safe=True)


def _row(value: ir.Value | None, node: ir.Node) -> tuple[ir.Node, ir.Node] | None:
    """The nodes that make a row of parts and give it a dimension, which only another node reads."""
    lifted = _read_once(value, node)
    if lifted is None or lifted.op_type != "Unsqueeze" or not is_onnx(lifted):
        return None
    join = _read_once(lifted.inputs[0], lifted) if constant_integers(lifted.inputs[1]) == [0] else None
    return (lifted, join) if join is not None and _is_join(join) else None


def _read_once(value: ir.Value | None, reader: ir.Node) -> ir.Node | None:
    node = value.producer() if value is not None else None
    if node is None or value is None or node.graph is not reader.graph:
        return None
    return node if len(value.uses()) == 1 and not value.is_graph_output() else None


def _is_join(node: ir.Node) -> bool:
    return node.op_type == "Concat" and is_onnx(node) and node.attributes["axis"].as_int() == 0


def _sizes(value: ir.Value) -> list[int] | None:
    """The shape of a value, if all sizes are fixed."""
    sizes = [size for size in value.shape or () if isinstance(size, int)]
    return sizes if value.shape is not None and len(sizes) == len(value.shape) else None
