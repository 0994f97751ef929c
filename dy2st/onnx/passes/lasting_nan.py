"""States of a loop that are NaN at its end if something in one of its trips is.

::

    next = Add(Mul(state, scale), ReduceSum(Exp(Sub(x, most))))

A NaN in ``x`` makes ``next`` NaN, and a state that is NaN makes the next one NaN. So the end tells of all trips.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT
from dy2st.onnx.passes.graph_facts import is_onnx, same_shape

# Of one operand: a NaN in it is one in the result. A sum has as many parts as there are.
_OF_ONE = frozenset("Exp Identity Log Neg ReduceSum Sqrt Squeeze Transpose Unsqueeze".split())
# Of two, as long as the one with the NaN is not stretched: to no element, for one.
_OF_TWO = frozenset("Add Div Mul Sub".split())


def lasting_state(value: ir.Value, loop: ir.Node) -> int | None:
    """The place of a state that is NaN at the end of a loop if a value of its body is in any trip; None if none is."""
    body = loop.attributes["body"].as_graph()
    before, first = (2, 1) if loop.op_type == "Loop" else (0, 0)
    scanned = loop.attributes["num_scan_inputs"].as_int() if loop.op_type == "Scan" else 0
    told = _reached(value, body)
    for place in range(len(body.inputs) - before - scanned):
        state, end = body.inputs[before + place], body.outputs[first + place]
        if end in told and end in _reached(state, body):
            return place
    return None


def _reached(value: ir.Value, body: ir.Graph) -> set[ir.Value]:
    """The values of a body that have a NaN if a value has one."""
    found = {value}
    for node in body:
        if (
            is_onnx(node)
            and len(node.outputs) == 1
            and node.outputs[0].dtype in {FLOAT, DOUBLE}
            and _keeps(node, found)
        ):
            found.add(node.outputs[0])
    return found


def _keeps(node: ir.Node, found: set[ir.Value]) -> bool:
    out = node.outputs[0]
    if node.op_type in _OF_ONE:
        return node.inputs[0] in found
    return node.op_type in _OF_TWO and any(each in found and same_shape(each, out) for each in node.inputs)
