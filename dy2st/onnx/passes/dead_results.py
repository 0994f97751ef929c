"""Results of branches and loops that nobody reads are not computed.

Before::

    y, x_after = If(sure) <
        then_branch = stop () => (y_1, x_1) { y_1 = Identity(logits) x_1 = Identity(x) },
        else_branch = go_on () => (y_2, x_2) { x_2 = Add(x, step) y_2 = MatMul(x_2, w) }
    >                                                                   # nobody reads x_after

After::

    y = If(sure) <
        then_branch = stop () => (y_1) { y_1 = Identity(logits) },
        else_branch = go_on () => (y_2) { x_2 = Add(x, step) y_2 = MatMul(x_2, w) }
    >

So are rows that a loop stacks, and states that only their own next value depends on. Where something in an arm or body
is there to fail (:mod:`dy2st.onnx.translations.guard_nodes`), or draws at random, all its results stay.
Source: dead code elimination, Aho, Lam, Sethi, Ullman, "Compilers", 2006, section 9.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir
import onnx_ir.passes.common as passes

from dy2st.onnx.passes.repeated_nodes import is_pure


def drop_dead_results(model: ir.Model) -> None:
    """Take them out; in place, from the outside in."""
    passes.RemoveUnusedNodesPass()(model)
    while any([_dropped(node) for node in list(ir.traversal.RecursiveGraphIterator(model.graph))]):  # noqa: C419 - all
        passes.RemoveUnusedNodesPass()(model)


def _dropped(node: ir.Node) -> bool:
    """Drop what is dead of a branch or loop; whether there was something."""
    if node.domain not in {"", "ai.onnx"} or node.op_type not in {"If", "Loop"} or node.graph is None:
        return False
    bodies = [
        attribute.as_graph() for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH
    ]
    if not all(is_pure(inner) or _has_bodies(inner) for body in bodies for inner in body.all_nodes()):
        return False
    alive = _alive(node) if node.op_type == "If" else _alive_in_loop(node, bodies[0])
    states = len(bodies[0].inputs) - 2
    if node.op_type == "Loop" and states > 0 and node.inputs[1] is None and not any(place < states for place in alive):
        alive = [0, *alive]  # ONNX wants two operands of a loop, and one of them is left out
    alive = alive or [0]  # a node has a result
    if len(alive) == len(node.outputs):
        return False
    _keep(node, bodies, alive)
    return True


def _has_bodies(node: ir.Node) -> bool:
    return any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values())


def _alive(node: ir.Node) -> list[int]:
    return [place for place, out in enumerate(node.outputs) if out.uses() or out.is_graph_output()]


def _alive_in_loop(node: ir.Node, body: ir.Graph) -> list[int]:
    """The results that are read, and the states on which those or the test depend."""
    states = {id(value): place for place, value in enumerate(body.inputs[2:])}
    alive = set(_alive(node))
    waiting = [body.outputs[0], *(body.outputs[1 + place] for place in alive)]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        place = states.get(id(value))
        if place is not None and place not in alive:
            alive.add(place)
            waiting.append(body.outputs[1 + place])
        producer = value.producer()
        if producer is not None:
            waiting += _operands(producer)
    return sorted(alive)


def _operands(node: ir.Node) -> Iterator[ir.Value]:
    """What a node reads, and what its subgraphs do."""
    yield from (value for value in node.inputs if value is not None)
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            graph = attribute.as_graph()
            yield from graph.outputs
            for inner in graph:
                yield from _operands(inner)


def _keep(node: ir.Node, bodies: Sequence[ir.Graph], alive: Sequence[int]) -> None:
    """Leave these results of a node, with what is carried for them."""
    first = 0 if node.op_type == "If" else 1
    inputs = list(node.inputs)
    carried = len(bodies[0].inputs) - 2
    for body in bodies:
        for place in sorted(set(range(len(node.outputs))) - set(alive), reverse=True):
            body.outputs.pop(first + place)
            if first and place < carried:
                body.inputs.pop(2 + place)
                inputs.pop(2 + place)
    outputs = [ir.Value(name=old.name, type=old.type, shape=old.shape) for old in (node.outputs[i] for i in alive)]
    made = ir.Node(
        node.domain,
        node.op_type,
        inputs,
        node.attributes.values(),
        outputs=outputs,
        version=node.version,
        name=node.name,
    )
    made.metadata_props.update(node.metadata_props)
    graph = node.graph
    assert graph is not None
    graph.insert_before(node, made)
    for old, new in zip((node.outputs[i] for i in alive), outputs, strict=True):
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    graph.remove(node, safe=True)
