"""A ``Scan`` that only gives rows on as they are is taken out: its results are what it goes over.

Before::

    h_end, ys = Scan<num_scan_inputs = 2>(h, xs, us) <body = step (h, x, u) {
        next = Add(h, u)
        y = Identity(x)
    }>

After::

    h_end = Scan<num_scan_inputs = 2>(h, xs, us) <body = ...>        # none, where there is no state
    ys = xs
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import is_onnx


def pass_rows_on(graph: ir.Graph) -> None:
    """Read such rows from where they come from; in place. A result of the graph gets an ``Identity``."""
    for node in list(graph):
        if node.op_type != "Scan" or not is_onnx(node) or set(node.attributes) != {"body", "num_scan_inputs"}:
            continue
        body = node.attributes["body"].as_graph()
        states = len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
        for place in range(states, len(node.outputs)):
            given = body.outputs[place].producer()
            element = given.inputs[0] if given is not None and given.op_type == "Identity" else None
            if element is None or element not in body.inputs[states:]:
                continue
            rows = node.inputs[list(body.inputs).index(element)]
            copy = ir.Node("", "Identity", [rows], version=node.version)
            copy.metadata_props.update(node.metadata_props)
            made, old = copy.outputs[0], node.outputs[place]
            made.name, made.type, made.shape = old.name, old.type, old.shape
            old.name = f"{old.name}_row"
            graph.insert_before(node, copy)
            ir.convenience.replace_all_uses_with(old, made, replace_graph_outputs=True)
        if not any(out.uses() or out.is_graph_output() for out in node.outputs):
            graph.remove(node, safe=True)
