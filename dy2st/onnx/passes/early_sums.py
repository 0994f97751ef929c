"""In a loop, weights are added to what needs no earlier step, not to a sum with the state: then that is done before it.

Before, for ``x[t] @ w + h @ u + b`` where ``h`` is the state and ``b`` a vector of weights::

    sum = Add(from_x, from_h)
    gate = Add(sum, b)

After::

    biased = Add(from_x, b)
    gate = Add(biased, from_h)

A sum may be rounded otherwise, as after any change of its order, and one whose parts are nearly too large for their
dtype may overflow in one order and not in the other. So a single number is left where it is: that may be there for
what rounding makes of it, as in ``(x + h + 2**23) - 2**23``. Nothing is written where the loop stays as it is.
Source: reassociation, Briggs, Cooper, "Effective Partial Redundancy Elimination", 1994.
"""

from __future__ import annotations

from collections.abc import Container

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import is_onnx, same_shape


def add_early(body: ir.Graph, stateless: Container[ir.Value]) -> None:
    """Change the order of such sums; in place.

    Args:
        body: the body of a loop.
        stateless: the values in it that depend on the number of the trip alone.
    """
    inside = set(body.inputs) | {out for node in body for out in node.outputs}
    for node in list(body):
        if node.op_type == "Add" and is_onnx(node):
            for place in (0, 1):
                if _reordered(node, node.inputs[place], node.inputs[1 - place], stateless, inside):
                    break


def _is_weight(value: ir.Value) -> bool:
    """Whether a value is a constant of several numbers."""
    found = ir.convenience.get_const_tensor(value)
    return found is not None and found.size > 1


def _reordered(
    node: ir.Node,
    total: ir.Value | None,
    last: ir.Value | None,
    stateless: Container[ir.Value],
    inside: Container[ir.Value],
) -> bool:
    """Add the last part to the one of the others that needs no state; whether there is one."""
    inner = total.producer() if total is not None else None
    if inner is None or last is None or total is None or total not in inside or total.is_graph_output():
        return False
    if not _is_weight(last):
        return False
    if inner.op_type != "Add" or not is_onnx(inner) or len(total.uses()) != 1:
        return False
    for place in (0, 1):
        row, state = inner.inputs[place], inner.inputs[1 - place]
        if row is None or state is None or row not in stateless or state in stateless or state not in inside:
            continue
        if not same_shape(row, node.outputs[0]):
            continue
        made = ir.Node("", "Add", [row, last], version=inner.version, name=f"{inner.name}_early")
        out = made.outputs[0]
        out.name, out.type, out.shape = f"{total.name}_early", total.type, row.shape
        made.metadata_props.update(inner.metadata_props)
        graph = node.graph
        assert graph is not None
        graph.insert_before(node, made)
        node.replace_input_with(0, out)
        node.replace_input_with(1, state)
        graph.remove(inner, safe=True)
        return True
    return False
