"""The sizes of stacked rows, of which a loop without a trip has none: they are told by a ``Reshape`` behind the loop.

A ``Scan`` that is given one row in place of none has rows of all sizes, as has the other arm of a branch that makes
none of them from a state of their shape. So the ``Reshape`` is left out there::

    stacked = Loop(trips, "", h) <...>                  # [steps, batch]
    sized = Reshape(stacked, Concat(steps, batch))

So it is left out behind any loop that makes one trip at least, if its first size is read from the rows themselves.

The other loops are those that are being written as a ``Scan``, without the result of the body that says whether they
go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import op
from dy2st.onnx.passes.graph_facts import is_onnx, same_shape, same_size
from dy2st.onnx.passes.loop_sizes import is_true, length_of_dimension, length_of_number


def leave_out_sizes(loop: ir.Node, body: ir.Graph, values: Sequence[ir.Value], places: Iterable[int]) -> None:
    """Read ``values``, which take the place of the loop's results, instead of those that are told the same sizes."""
    for place in places:
        for told in _told(loop, body, place):
            _read_instead(told, values[place])


def leave_out_told_sizes(model: ir.Model, filled: AbstractSet[str]) -> None:
    """Leave them out behind loops that make a trip; in place. ``filled`` are the names of sizes that are never zero."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "Loop" and is_onnx(node) and _makes_a_trip(node, filled):
            body = node.attributes["body"].as_graph()
            for place in range(len(node.inputs) - 2, len(node.outputs)):
                row, rows = body.outputs[place + 1], node.outputs[place]
                for told in _reshaped(row, rows):
                    if _begins_with_length(told.producer(), rows):
                        _read_instead(told, rows)


def _read_instead(told: ir.Value, rows: ir.Value) -> None:
    """Read rows in place of what is told their sizes; a result of the graph is none twice."""
    if told.is_graph_output() and rows.is_graph_output():
        return
    rows.shape = told.shape
    told.replace_all_uses_with(rows, replace_graph_outputs=True)


def _makes_a_trip(loop: ir.Node, filled: AbstractSet[str]) -> bool:
    trips, start = loop.inputs[:2]
    length = length_of_number(trips)
    enough = trips is None or (length is not None and (length.is_some or (length.more >= 0 and length.name in filled)))
    return enough and (start is None or is_true(start))


def _begins_with_length(node: ir.Node | None, rows: ir.Value) -> bool:
    """Whether the first of the sizes that a ``Reshape`` is told is that of the rows which it is given."""
    value = node.inputs[1] if node is not None else None
    while value is not None and (made := value.producer()) is not None and is_onnx(made):
        if made.op_type == "Shape":
            begin = made.attributes["start"].as_int() if "start" in made.attributes else 0
            return made.inputs[0] is rows and begin == 0
        if made.op_type not in {"Concat", "Reshape", "Squeeze", "Unsqueeze", "Identity"}:
            return False
        value = made.inputs[0]
    return False


def states_like_rows(loop: ir.Node, body: ir.Graph) -> dict[int, ir.Value]:
    """States before the loop of the shape and dtype of rows that are told their sizes, by the place of those."""
    found = {}
    starts = [start for start in loop.inputs[2:] if start is not None]
    for place in range(len(loop.inputs) - 2, len(loop.outputs)):
        row = body.outputs[place]
        state = next((each for each in starts if each.dtype == row.dtype and same_shape(each, row)), None)
        if state is not None and _told(loop, body, place):
            found[place] = state
    return found


def no_rows(like: ir.Value, state: ir.Value | None) -> ir.Value:
    """Stacked rows of which there are none, each of the shape of a state, if one is given.

    Else it is as in a loop without a trip: sizes that differ from call to call are 0.
    """
    if state is not None:
        return op("Slice", op("Unsqueeze", state, [0]), [0], [0], [0])
    assert like.shape is not None
    assert like.dtype is not None
    sizes = [0, *(size if isinstance(size, int) else 0 for size in like.shape[1:])]
    made = op("Constant", value=ir.tensor(np.zeros(sizes, like.dtype.numpy()), dtype=like.dtype), dtype=like.dtype)
    made.shape = ir.Shape(sizes)
    return made


def _told(loop: ir.Node, body: ir.Graph, place: int) -> list[ir.Value]:
    """The rows of a place as they are told the sizes that they have."""
    trips = length_of_number(loop.inputs[0])
    told = _reshaped(body.outputs[place], loop.outputs[place])
    return [each for each in told if length_of_dimension(each, 0) == trips]


def _reshaped(row: ir.Value, rows: ir.Value) -> list[ir.Value]:
    """Stacked rows with sizes that are told, which but for the first one are those of a row."""
    found = [use.node.outputs[0] for use in rows.uses() if use.node.op_type == "Reshape" and not use.idx]
    return [
        each
        for each in found
        if each.shape is not None
        and row.shape is not None
        and len(each.shape) == len(row.shape) + 1
        and all(map(same_size, list(each.shape)[1:], row.shape))
    ]
