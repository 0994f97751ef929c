"""The sizes of stacked rows, of which a loop without a trip has none: they are told by a ``Reshape`` behind the loop.

A ``Scan`` that is given one row in place of none has rows of all sizes, as has the other arm of a branch that makes
none of them from a state of their shape. So the ``Reshape`` is left out there::

    stacked = Loop(trips, "", h) <...>                  # [steps, batch]
    sized = Reshape(stacked, Concat(steps, batch))

The loops are those that are being written as a ``Scan``, without the result of the body that says whether they go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import op
from dy2st.onnx.passes.graph_facts import same_shape, same_size
from dy2st.onnx.passes.loop_sizes import length_of_dimension, length_of_number


def leave_out_sizes(loop: ir.Node, body: ir.Graph, values: Sequence[ir.Value], places: Iterable[int]) -> None:
    """Read ``values``, which take the place of the loop's results, instead of those that are told the same sizes."""
    for place in places:
        for told in _told(loop, body, place):
            values[place].shape = told.shape
            told.replace_all_uses_with(values[place])


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
    row, trips = body.outputs[place], length_of_number(loop.inputs[0])
    found = [use.node.outputs[0] for use in loop.outputs[place].uses() if use.node.op_type == "Reshape" and not use.idx]
    return [
        each
        for each in found
        if each.shape is not None
        and row.shape is not None
        and len(each.shape) == len(row.shape) + 1
        and all(map(same_size, list(each.shape)[1:], row.shape))
        and length_of_dimension(each, 0) == trips
        and not each.is_graph_output()
    ]
