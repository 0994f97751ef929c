"""A state to which each trip adds a dimension, and takes it away at its end, is carried with the dimension.

Before::

    end, rows = Scan<num_scan_inputs = 1>(start, xs) <body = step (state, x) {
        column = Unsqueeze(state, [1])
        found = GatherElements<axis = 1>(x, column)      # [batch, 1]
        next = Squeeze(found, [1])
        row = Identity(next)
    }>

After::

    wide = Unsqueeze(start, [1])
    wide_end, wide_rows = Scan<num_scan_inputs = 1>(wide, xs) <body = step (column, x) {
        found = GatherElements<axis = 1>(x, column)
        row = Identity(found)
    }>
    end = Squeeze(wide_end, [1])
    rows = Squeeze(wide_rows, [2])

In a ``Loop``, which may make no trip, the rows are stacked as they are: none are of no shape that is known.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import op, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_shape, same_size
from dy2st.onnx.passes.loop_invariants import LOOPS

_ATTRIBUTES = frozenset(("body", "num_scan_inputs", "scan_input_directions"))


def carry_dimensions(model: ir.Model, opset: int) -> None:
    """Carry such dimensions; in place, in each loop by itself."""
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            if node.op_type in LOOPS and is_onnx(node) and set(node.attributes) <= _ATTRIBUTES:
                _carry(node, opset)


def _carry(node: ir.Node, opset: int) -> None:
    body = node.attributes["body"].as_graph()
    before, first = (2, 1) if node.op_type == "Loop" else (0, 0)
    scanned = node.attributes["num_scan_inputs"].as_int() if "num_scan_inputs" in node.attributes else 0
    for place in range(len(body.inputs) - before - scanned):
        _widen(node, body, place, (before, first), opset)


def _widen(node: ir.Node, body: ir.Graph, place: int, firsts: tuple[int, int], opset: int) -> None:
    """Widen one state, if it is one of these; ``firsts`` are the places of the first one, as input and as result."""
    before, first = firsts
    state, end, start = body.inputs[before + place], body.outputs[first + place], node.inputs[before + place]
    taken = _taken_away(end)
    if taken is None or start is None or start.shape is None or state.shape is None:
        return
    wide, axis = taken
    readers = [use.node for use in state.uses()]
    if not readers or state.is_graph_output() or wide.is_graph_output() or wide.producer() not in body:
        return
    if any(
        _added(reader, state) != axis or reader.graph is not body or reader.outputs[0].is_graph_output()
        for reader in readers
    ):
        return
    assert wide.shape is not None
    others = [size for d, size in enumerate(wide.shape) if d != axis]
    if len(state.shape) != len(others) or not all(map(same_size, state.shape, others)):
        return
    state.shape = wide.shape
    for reader in readers:
        reader.outputs[0].replace_all_uses_with(state)
        body.remove(reader, safe=True)
    body.outputs[first + place] = wide
    given = _taken_away(start)
    if given is not None and given[1] == axis and same_shape(given[0], wide):
        node.replace_input_with(before + place, given[0])
    else:
        with recording(opset) as made:
            node.replace_input_with(before + place, op("Unsqueeze", start, [axis]))
        _put(node, made.nodes, f"{state.name}_wide", behind=False)
    narrow_result(node, node.outputs[place], axis, opset)
    if node.op_type == "Scan":
        _stack_wide(node, body, end, (wide, axis), opset)
    taker = end.producer()
    if taker is not None and not end.uses() and not end.is_graph_output():
        body.remove(taker, safe=True)


def _stack_wide(node: ir.Node, body: ir.Graph, end: ir.Value, taken: tuple[ir.Value, int], opset: int) -> None:
    """Stack rows that are the state's with the dimension, too, if nothing else needs the state without it."""
    wide, axis = taken
    users = [use.node for use in end.uses()]
    if end.is_graph_output() or any(user.op_type != "Identity" or user.graph is not body for user in users):
        return
    if not all(user.outputs[0].is_graph_output() and not user.outputs[0].uses() for user in users):
        return
    for user in users:
        user.replace_input_with(0, wide)
        user.outputs[0].shape = wide.shape
        for place, result in enumerate(body.outputs):
            if result is user.outputs[0]:
                narrow_result(node, node.outputs[place], axis + 1, opset)


def narrow_result(node: ir.Node, value: ir.Value, axis: int, opset: int) -> None:
    """Let a result of a loop that has a dimension of size 1 more be read without it; in place."""
    if not value.uses() and not value.is_graph_output():
        value.shape = None
        return
    with recording(opset) as made:
        found = op("Squeeze", value, [axis])
    squeeze = found.producer()
    for use in list(value.uses()):
        if use.node is not squeeze:
            use.node.replace_input_with(use.idx, found)
    graph = node.graph
    assert graph is not None
    for place, result in enumerate(graph.outputs):
        if result is value:
            graph.outputs[place] = found
    found.shape, name = value.shape, value.name
    value.shape, value.name = None, f"{name}_wide"
    _put(node, made.nodes, str(name), behind=True)
    found.name = name


def _put(node: ir.Node, made: list[ir.Node], stem: str, *, behind: bool) -> None:
    graph = node.graph
    assert graph is not None
    for count, each in enumerate(made):
        each.outputs[0].name = f"{stem}_{count}"
        each.name = f"node_{each.outputs[0].name}"
    (graph.insert_after if behind else graph.insert_before)(node, made)


def _added(node: ir.Node, value: ir.Value) -> int | None:
    """Where a node gives a value one more dimension."""
    axes = constant_integers(node.inputs[1]) if node.op_type == "Unsqueeze" and is_onnx(node) else None
    if axes is None or len(axes) != 1 or node.inputs[0] is not value or value.shape is None:
        return None
    return axes[0] % (len(value.shape) + 1)


def _taken_away(value: ir.Value) -> tuple[ir.Value, int] | None:
    """What a value is with one more dimension of size 1, and where."""
    node = value.producer()
    if node is None or not is_onnx(node) or node.op_type not in {"Gather", "Squeeze"} or len(node.inputs) != 2:
        return None
    wide, given = node.inputs[0], constant_integers(node.inputs[1])
    if wide is None or wide.shape is None or given is None or len(given) != 1:
        return None
    if node.op_type == "Gather":
        index = node.inputs[1]
        if given[0] not in {0, -1} or index is None or index.shape is None or len(index.shape):
            return None
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    else:
        axis = given[0]
    if not -len(wide.shape) <= axis < len(wide.shape) or wide.shape[axis] != 1:
        return None
    return wide, axis % len(wide.shape)
