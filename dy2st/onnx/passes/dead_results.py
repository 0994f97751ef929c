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

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.repeated_nodes import is_pure


def drop_dead_results(model: ir.Model) -> None:
    """Take them out; in place, from the outside in."""
    changed = True
    while changed:
        # An arm that is decided leaves the other one behind, whose nodes still count as users of what they read.
        present = set(ir.traversal.RecursiveGraphIterator(model.graph))
        _sweep(model.graph, present)
        nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
        changed = any([_dropped(node, present) for node in nodes])  # noqa: C419 - all of them


def _sweep(graph: ir.Graph, present: set[ir.Node]) -> None:
    """Remove the nodes that nobody reads, subgraphs included: they may read a state that is there no more."""
    for node in reversed(list(graph)):
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                _sweep(attribute.as_graph(), present)
        if is_pure(node) and not any(_is_read(out, present) for out in node.outputs):
            _forget(node.outputs)
            graph.remove(node, safe=True)
            present.discard(node)


def _forget(values: Iterable[ir.Value]) -> None:
    """Take values away from nodes that are in the model no more."""
    for value in values:
        for use in list(value.uses()):
            use.node.replace_input_with(use.idx, None)


def _is_read(value: ir.Value, present: AbstractSet[ir.Node]) -> bool:
    """Whether a value is a result, or is read by a node of the model."""
    return value.is_graph_output() or any(use.node in present for use in value.uses())


def _dropped(node: ir.Node, present: set[ir.Node]) -> bool:
    """Drop what is dead of a branch or loop; whether there was something."""
    if not is_onnx(node) or node.op_type not in {"If", "Loop"} or node.graph is None:
        return False
    bodies = [
        attribute.as_graph() for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH
    ]
    if not all(is_pure(inner) or _has_bodies(inner) for body in bodies for inner in body.all_nodes()):
        return False
    read = [place for place, out in enumerate(node.outputs) if _is_read(out, present)]
    if not read:  # what it reads may be a state that is there no more
        _forget(node.outputs)
        node.graph.remove(node, safe=True)
        present.discard(node)
        return True
    alive = read if node.op_type == "If" else _alive_in_loop(node, bodies[0], read)
    if len(alive) == len(node.outputs):
        return False
    present.add(_keep(node, bodies, alive))
    return True


def _has_bodies(node: ir.Node) -> bool:
    return any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values())


def _alive_in_loop(node: ir.Node, body: ir.Graph, read: Sequence[int]) -> list[int]:
    """The results that are read, and the states on which those or the test depend."""
    alive = _closed(body, read)
    carried = len(body.inputs) - 2
    needs_state = carried > 0 and node.inputs[1] is None and not any(place < carried for place in alive)
    # ONNX wants two operands of a loop, of which one is left out here, and a result.
    return sorted(_closed(body, [*alive, 0]) if needs_state or not alive else alive)


def _closed(body: ir.Graph, results: Sequence[int]) -> set[int]:
    """Some results of a loop, and the states on which those or the test depend."""
    states = {id(value): place for place, value in enumerate(body.inputs[2:])}
    alive = set(results)
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
    return alive


def _operands(node: ir.Node) -> Iterator[ir.Value]:
    """What a node reads, and what its subgraphs do."""
    yield from (value for value in node.inputs if value is not None)
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            graph = attribute.as_graph()
            yield from graph.outputs
            for inner in graph:
                yield from _operands(inner)


def _keep(node: ir.Node, bodies: Sequence[ir.Graph], alive: Sequence[int]) -> ir.Node:
    """The node with these of its results, and what is carried for them, in its place."""
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
    _forget(node.outputs)
    graph.remove(node, safe=True)
    return made
