"""In a loop, a part of a row of a tensor is the row of a part, where that part of the tensor is there already.

Before::

    low = Slice(boxes, [0], [2], [1])                # [n, 2]
    end = Loop(trips, "", best) <body = step (i, go, place) {
        row = Gather(boxes, place)                   # [4]
        corner = Slice(row, [0], [2], [0])
        others = Gather(low, ...)
    }>

After::

    end = Loop(trips, "", best) <body = step (i, go, place) {
        corner = Gather(low, place)
        others = Gather(low, ...)
    }>

It is done where all that is read of the row are such parts: each then takes one node, and the row none.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.loop_invariants import LOOPS

Part = tuple[tuple[int, ...], ...]


def take_row_parts(model: ir.Model, opset: int) -> None:
    """Take such rows of parts; in place, in the bodies of loops."""
    for graph in (model.graph, *model.graph.subgraphs()):
        parts: dict[tuple[ir.Value, Part], ir.Value] = {}
        for node in graph:
            part = _part(node)
            if part is not None and node.inputs[0] is not None:
                parts.setdefault((node.inputs[0], part), node.outputs[0])
            if parts and node.op_type in LOOPS and is_onnx(node):
                for row in list(node.attributes["body"].as_graph()):
                    _take(row, parts, opset)


def _take(row: ir.Node, parts: dict[tuple[ir.Value, Part], ir.Value], opset: int) -> None:
    """Let the parts of a row be rows, if all of them can be and nothing else is read of it."""
    if row.op_type != "Gather" or not is_onnx(row) or row.outputs[0].is_graph_output():
        return
    data, place = row.inputs
    axis = row.attributes["axis"].as_int() if "axis" in row.attributes else 0
    if data is None or place is None or place.shape is None or len(place.shape) or axis:
        return
    found = []
    for use in row.outputs[0].uses():
        part = _part(use.node)
        if part is None or use.idx or use.node.graph is not row.graph:
            return
        begins, ends, axes, steps = part
        if min(axes) < 0:  # counted from the end they are the same, but for the parts that are there
            return
        whole = parts.get((data, (begins, ends, tuple(each + 1 for each in axes), steps)))
        if whole is None:
            return
        found.append((use.node, whole))
    for node, whole in found:
        with recording(opset) as made:
            value = op("Gather", whole, place, axis=0)
        value.type, value.shape = node.outputs[0].type, node.outputs[0].shape
        put_in_place(node, made.nodes, [value])
    if found and row.graph is not None:
        row.graph.remove(row, safe=True)


def _part(node: ir.Node) -> Part | None:
    """From where to where a ``Slice`` goes, along which axes, in which steps, if all of that is constant."""
    if node.op_type != "Slice" or not is_onnx(node) or len(node.inputs) < 4:
        return None
    given = [constant_integers(each) for each in node.inputs[1:]]
    begins, ends, axes, *steps = (None if each is None else tuple(each) for each in given)
    if begins is None or ends is None or axes is None or None in steps:
        return None
    return begins, ends, axes, (steps[0] if steps and steps[0] is not None else (1,) * len(axes))
