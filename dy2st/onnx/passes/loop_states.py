"""A state of a loop that becomes other states and stacked rows: the loop without it, to be put in its place."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from dy2st.onnx.building import BOOL, constant, recorder
from dy2st.onnx.passes.repeated_nodes import is_pure

# A state: what it is before the loop, in the body, and after a trip.
State = tuple[ir.Value, ir.Value, ir.Value]


def stack_in_place_of(loop: ir.Node, place: int, states: Sequence[State], *told: ir.Value) -> ir.Node:
    """Record the loop without one of its states, with ``states`` behind the others, and with ``told`` stacked last.

    Nodes of the body that nothing reads any more are taken out. The old node still has to be replaced.
    """
    body = loop.attributes["body"].as_graph()
    carried = len(body.inputs) - 2
    body.outputs.pop(1 + place)
    body.inputs.pop(2 + place)
    for count, (_, inside, end) in enumerate(states):
        body.inputs.append(inside)
        body.outputs.insert(carried + count, end)
    body.outputs.extend(told)
    for node in reversed(list(body)):
        if is_pure(node) and not any(out.uses() or out.is_graph_output() for out in node.outputs):
            body.remove(node, safe=True)
    kept = [each for count, each in enumerate(loop.inputs[2:]) if count != place]
    inputs = [*loop.inputs[:2], *kept, *(first for first, _, _ in states)]
    if len(inputs) == 2 and inputs[1] is None:
        inputs[1] = constant(True, BOOL)  # ONNX wants two inputs at least
    results = len(kept) + len(states) + len(loop.outputs) - carried + len(told)
    attributes = loop.attributes.values()
    made = ir.Node("", "Loop", inputs, attributes=attributes, num_outputs=results, version=loop.version)
    recorder().nodes.append(made)
    for value, (first, _, _) in zip(made.outputs[len(kept) :], states, strict=False):
        value.type, value.shape = first.type, first.shape
    for value, each in zip(made.outputs[-len(told) :], told, strict=True):
        value.type, value.shape = each.type, ir.Shape([None, *(each.shape or ())])
    return made


def results_with(
    loop: ir.Node, made: ir.Node, place: int, count: int, whole: ir.Value, told: int = 1
) -> list[ir.Value]:
    """The results of a loop that :func:`stack_in_place_of` has made, with ``whole`` for the state, typed as before.

    ``count`` is the number of the states that were added, ``told`` that of what is stacked.
    """
    kept = len(loop.attributes["body"].as_graph().inputs) - 2 - count
    others = [*made.outputs[:kept], *made.outputs[kept + count : -told]]
    values = [*others[:place], whole, *others[place:]]
    for value, old in zip(values, loop.outputs, strict=True):
        value.type, value.shape = old.type, old.shape
    return values
