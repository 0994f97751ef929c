"""Indexing with one tensor along the first dimension: ``Gather`` and ``Compress`` in place of ``GatherND``.

torch's exporter writes ``x[i]`` as a ``GatherND`` and ``x[mask]`` as one of the places at which the mask is set. Both
have an operator of their own, of one node and with the same results.

Before::

    places = NonZero(mask)
    columns = Transpose<perm = [1, 0]>(places)
    i = Squeeze(columns, [1])
    index = Unsqueeze(i, [-1])
    y = GatherND(x, index)

After, if ``mask`` has the length of ``x`` (else ``y = Gather<axis = 0>(x, i)``, which fails outside of ``x``)::

    y = Compress<axis = 0>(x, mask)

Source: ONNX operators Compress-11, Gather-13 and GatherND-13, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx


def index_plainly(model: ir.Model, opset: int) -> None:
    """Write the indexing along the first dimension with the operators for it; in place, subgraphs included."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "GatherND" and is_onnx(node):
            _plain(node, opset)


def _plain(node: ir.Node, opset: int) -> None:
    data, index = node.inputs[:2]
    batch = node.attributes.get("batch_dims")
    rows = _without_last_axis(index)
    if data is None or rows is None or (batch is not None and batch.as_int()):
        return
    rows = _as_it_is(rows)
    out = node.outputs[0]
    mask = _mask_of(rows)
    with recording(opset) as made:
        if mask is not None and _same_length(data, mask):
            found = op("Compress", data, mask, axis=0, dtype=out.dtype or data.dtype)
        else:
            found = op("Gather", data, rows, axis=0, dtype=out.dtype or data.dtype)
    found.shape = out.shape
    put_in_place(node, made.nodes, [found])


def _produced(value: ir.Value | None, *kinds: str) -> ir.Node | None:
    """The node that a value comes from, if it is of one of these kinds."""
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type in kinds and is_onnx(node) else None


def _without_last_axis(index: ir.Value | None) -> ir.Value | None:
    """What an index of ``GatherND`` is, if it has only one number for each element that is taken."""
    node = _produced(index, "Unsqueeze")
    rows = node.inputs[0] if node is not None else None
    if node is None or rows is None or rows.shape is None:
        return None
    return rows if constant_integers(node.inputs[1]) in ([-1], [len(rows.shape)]) else None


def _as_it_is(value: ir.Value) -> ir.Value:
    """A value that is stretched to the shape that it has, as several tensors of places would be to a common one."""
    node = _produced(value, "Expand")
    if node is None:
        return value
    shape = _produced(node.inputs[1], "Shape")
    like = shape.inputs[0] if shape is not None and _is_whole(shape) else None
    alone = _produced(like, "Max")
    if alone is not None and len(alone.inputs) == 1:
        like = alone.inputs[0]
    return like if like is not None and like is node.inputs[0] else value


def _is_whole(shape: ir.Node) -> bool:
    start, end = (shape.attributes.get(name) for name in ("start", "end"))
    return (start is None or start.as_int() == 0) and end is None


def _mask_of(rows: ir.Value) -> ir.Value | None:
    """The mask of one dimension whose set places these rows are."""
    node = _produced(rows, "Squeeze")
    inner = node.inputs[0] if node is not None else None
    turned = _produced(inner, "Transpose")
    if turned is not None:
        inner = turned.inputs[0]
    found = _produced(inner, "NonZero")
    mask = found.inputs[0] if found is not None else None
    if mask is None or mask.shape is None or len(mask.shape) != 1 or mask.dtype != ir.DataType.BOOL:
        return None
    # Of a matrix of one row the other axis is dropped; of several neither could be.
    wanted = [1] if turned is not None else [0]
    return mask if node is not None and len(node.inputs) == 2 and constant_integers(node.inputs[1]) == wanted else None


def _same_length(data: ir.Value, mask: ir.Value) -> bool:
    """Whether a mask is known to have an element for each row."""
    if data.shape is None or mask.shape is None or not len(data.shape):
        return False
    rows, flags = data.shape[0], mask.shape[0]
    return rows == flags and (isinstance(rows, int) or rows.value is not None)
