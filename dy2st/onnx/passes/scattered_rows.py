"""A row that is written at one place is written as a row, not element by element; what is added to it is added there.

Before, for ``table[i] = row``::

    places = Expand(i, [1, 32])                         # table: [n, 32]
    rows = Unsqueeze(row, [0])
    after = ScatterElements<axis = 0>(table, places, rows)

After::

    place = Unsqueeze(i, [0])
    after = ScatterND(table, place, row)

Before, for ``table[i] += more``::

    old = Gather(table, i)
    row = Add(old, more)
    after = ...

After, if nothing else reads the sum::

    place = Unsqueeze(i, [0])
    after = ScatterND<reduction = "add">(table, place, more)

Source: ONNX operator ScatterND-18, https://onnx.ai/onnx/operators/onnx__ScatterND.html.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT, INT32, INT64, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_size

_WRITTEN = frozenset((BOOL, FLOAT, DOUBLE, INT32, INT64))
_ADDED = _WRITTEN - {BOOL}
# A number, as it is.
_SAME_NUMBER = frozenset(("Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"))


def scatter_rows(model: ir.Model, opset: int) -> None:
    """Write rows so; in place, subgraphs included."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "ScatterElements" and is_onnx(node) and node.graph is not None:
            _write(node, opset)


def _write(node: ir.Node, opset: int) -> None:
    data, places, rows = node.inputs
    plain = node.attributes.get_string("reduction", "none") == "none" and not node.attributes.get_int("axis", 0)
    if not plain or data is None or places is None or data.dtype not in _WRITTEN:
        return
    row, number = _one_row(rows, data), _number(places)
    if row is None or number is None or number.dtype != INT64:
        return
    more = _added(row, data, number) if data.dtype in _ADDED and len(row.uses()) == 1 else None
    with recording(opset) as made:
        place = op("Reshape", number, [1]) if _rank(number) else op("Unsqueeze", number, [0])
        place.shape = ir.Shape([1])
        if more is None:
            found = op("ScatterND", data, place, row)
        else:
            found = op("ScatterND", data, place, more, reduction="add")
    found.shape = node.outputs[0].shape
    put_in_place(node, made.nodes, [found])
    _remove_unread(places)
    _remove_unread(rows)


def _one_row(rows: ir.Value | None, data: ir.Value) -> ir.Value | None:
    """The row that rows consist of, if that has the shape of one of the data's."""
    node = rows.producer() if rows is not None else None
    if node is None or node.op_type != "Unsqueeze" or not is_onnx(node) or constant_integers(node.inputs[1]) != [0]:
        return None
    row = node.inputs[0]
    return row if row is not None and not row.is_graph_output() and _is_row_of(row, data) else None


def _is_row_of(row: ir.Value, data: ir.Value) -> bool:
    if row.shape is None or data.shape is None or len(row.shape) != len(data.shape) - 1:
        return False
    return all(map(same_size, row.shape, list(data.shape)[1:]))


def _number(value: ir.Value | None) -> ir.Value | None:
    """The one integer that all elements of a value are, of whatever rank; None if that can't be told."""
    found: ir.Value | None = None
    while value is not None:
        if value.shape is not None and all(size == 1 for size in value.shape):
            found = value
        node = value.producer()
        if node is None or node.op_type not in _SAME_NUMBER or not is_onnx(node):
            break
        value = node.inputs[0]
    return found


def _added(row: ir.Value, data: ir.Value, number: ir.Value) -> ir.Value | None:
    """What a row is more than the one that it takes the place of."""
    node = row.producer()
    if node is None or node.op_type != "Add" or not is_onnx(node):
        return None
    for old, more in (node.inputs, node.inputs[::-1]):
        taken = old.producer() if old is not None else None
        if taken is None or taken.op_type != "Gather" or not is_onnx(taken) or more is None:
            continue
        at = taken.inputs[1]
        same = taken.inputs[0] is data and at is not None and not _rank(at) and _number(at) is number
        if same and not taken.attributes.get_int("axis", 0) and _is_row_of(more, data):
            return more
    return None


def _rank(value: ir.Value) -> int:
    """The number of dimensions; -1 if it is not known."""
    return -1 if value.shape is None else len(value.shape)


def _remove_unread(value: ir.Value | None) -> None:
    """Take out the node of a value that nothing reads, and those that only it has read."""
    node = value.producer() if value is not None else None
    if node is None or node.graph is None or any(out.uses() or out.is_graph_output() for out in node.outputs):
        return
    operands = list(node.inputs)
    node.graph.remove(node, safe=True)
    for operand in operands:
        _remove_unread(operand)
