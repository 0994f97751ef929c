"""A guard in a loop that asks the same in each trip is asked before the loop, if that makes a trip.

Before::

    y, told_end = Loop(trips, "", x, 0) <body = step (i, go, state, told) {
        guard = Gather([0], wrong)                    # wrong: 0, or 1 where the run has to fail; the same in all trips
        told_next = Add(told, guard)
        labels_tied = Gather([labels], told_next)
        next = ...
    }>
    y_tied = Gather([y], told_end)

After::

    some = Greater(trips, 0)
    guard = Gather([0], Where(some, wrong, 0))
    y = Loop(trips, "", x) <body = step (i, go, state) {
        labels_tied = Gather([labels], guard)
        next = ...
    }>
    y_tied = Gather([y], guard)

What a guard gives is zero, or nothing at all. So a state to which each trip adds what such guards give is what it was
before the loop. A run that has to fail fails, though maybe before something else in the loop would have failed.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import INT64, op, put_before, recording
from dy2st.onnx.passes.dead_results import drop_dead_results
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.loop_invariants import hoist_invariants
from dy2st.onnx.passes.loop_sizes import is_true
from dy2st.onnx.translations.guard_nodes import GUARD


def guard_early(model: ir.Model, opset: int) -> None:
    """Ask such guards before their loops; in place, inner loops first."""
    changed = False
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            if node.op_type == "Loop" and is_onnx(node):
                changed = _move_out(node, opset) or changed
    if changed:
        drop_dead_results(model)
        hoist_invariants(model)


def _move_out(loop: ir.Node, opset: int) -> bool:
    """Whether a guard of a loop was moved before it."""
    body = loop.attributes["body"].as_graph()
    inside = {*body.inputs, *(out for node in body for out in node.outputs)}
    guards = [
        node
        for node in body
        if is_guard(node) and node.inputs[1] not in inside and not node.outputs[0].is_graph_output()
    ]
    if not guards:
        return False
    with recording(opset) as made:
        some = _makes_a_trip(loop)
        if some is not None:
            for guard in guards:
                wrong = op("Where", some, guard.inputs[1], 0)
                wrong.shape = ir.Shape([])
                guard.replace_input_with(1, wrong)
    put_before(loop, made.nodes, stem=f"{guards[0].outputs[0].name}_early")
    assert loop.graph is not None
    body.remove(guards)
    loop.graph.insert_before(loop, guards)
    for place in range(len(body.inputs) - 2):
        _leave_out(loop, place, opset)
    return True


def is_guard(node: ir.Node) -> bool:
    """Whether a node gives zero, or fails."""
    return node.op_type == "Gather" and GUARD in node.metadata_props and constant_integers(node.inputs[0]) == [0]


def _makes_a_trip(loop: ir.Node) -> ir.Value | None:
    """Whether a loop makes a trip, as a value; None if it makes one in any case."""
    trips, start = (*loop.inputs, None)[:2]
    some = None
    fixed = constant_integers(trips)
    if trips is not None and not (fixed is not None and fixed[0] > 0):
        some = op("Greater", trips, 0)
    if start is not None and not is_true(start):
        some = start if some is None else op("And", some, start)
    if some is not None:
        some.shape = ir.Shape([])
    return some


def _leave_out(loop: ir.Node, place: int, opset: int) -> None:
    """A state to which each trip adds what guards before the loop give, and nothing else, is that before the loop."""
    body = loop.attributes["body"].as_graph()
    start, state, end = loop.inputs[2 + place], body.inputs[2 + place], body.outputs[1 + place]
    told, chain = _added(end, state, body)
    if not told or start is None or start.dtype != INT64 or start.shape is None or len(start.shape):
        return
    with recording(opset) as made:
        total = start
        for each in told:
            total = each if constant_integers(total) == [0] else op("Add", total, each)
            total.shape = ir.Shape([])
    put_before(loop, made.nodes, stem=f"{state.name}_early")
    for value in (state, *(node.outputs[0] for node in chain)):
        for use in list(value.uses()):
            if use.node not in chain:
                use.node.replace_input_with(use.idx, total)
    out = loop.outputs[place]
    if not out.is_graph_output():
        out.replace_all_uses_with(total)


def _added(value: ir.Value, state: ir.Value, body: ir.Graph) -> tuple[list[ir.Value], list[ir.Node]]:
    """What a trip adds to a state, if that is what guards outside of the body give, and the nodes that add it."""
    told: list[ir.Value] = []
    chain: list[ir.Node] = []
    while value is not state:
        node = value.producer()
        if node is None or node.op_type not in {"Add", "Identity"} or not is_onnx(node) or node.graph is not body:
            return [], []
        chain.append(node)
        guards = [each for each in node.inputs if each is not None and _is_told(each, body)]
        rest = [each for each in node.inputs if each is not None and each not in guards]
        if len(rest) != 1:
            return [], []
        told += guards
        value = rest[0]
    return told, chain


def _is_told(value: ir.Value, body: ir.Graph) -> bool:
    node = value.producer()
    return node is not None and node.graph is not body and is_guard(node)
