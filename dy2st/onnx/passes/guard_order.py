"""Guards of sizes run before what is computed with these sizes.

A file declares that two sizes are one where a guard says so. onnxruntime believes it, and fails with a message of its
own, about memory or a shape, if it meets a node that contradicts it before the guard. So whatever reads a tensor of
which a guard has looked at a size reads it through a ``Reshape`` to the same sizes that waits for the guard; this
copies nothing.
Source: ONNX operator Reshape-14, https://onnx.ai/onnx/operators/onnx__Reshape.html.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.translations.guard_nodes import GUARD

# Operators between a size and a guard.
_OF_SIZES = frozenset(
    "Add And Cast Concat Equal Gather Identity Mul Not ReduceMin Reshape Slice Squeeze Sub Unsqueeze Where".split()
)


def guards_of_sizes_first(model: ir.Model) -> None:
    """Let what reads a tensor wait for the guards of its sizes, in the graph of the guard and those inside it."""
    holders = _holders(model.graph)
    guards = [node for node in ir.traversal.RecursiveGraphIterator(model.graph) if GUARD in node.metadata_props]
    for guard in guards:
        measured = _measured(guard)
        before = _ancestors(guard) if measured else set()
        for place, value in enumerate(measured):
            readers = [(node, i) for node, i in value.uses() if _waits(node, guard, before, holders)]
            if readers:
                waiting = _waiting(value, guard, place)
                for node, i in readers:
                    node.replace_input_with(i, waiting)
    if guards:
        model.graph.sort()


def _graphs_of(node: ir.Node) -> list[ir.Graph]:
    return [each.as_graph() for each in node.attributes.values() if each.type == ir.AttributeType.GRAPH]


def _holders(graph: ir.Graph) -> dict[ir.Graph, ir.Node]:
    """The nodes that graphs inside a graph belong to."""
    nodes = ir.traversal.RecursiveGraphIterator(graph)
    return {inner: node for node in nodes for inner in _graphs_of(node)}


def _waiting(value: ir.Value, guard: ir.Node, place: int) -> ir.Value:
    """A tensor as it is, for those that wait for a guard: a guard is zero."""
    graph, zero = guard.graph, guard.outputs[0]
    assert graph is not None
    assert value.shape is not None
    sizes = ir.Node("", "Shape", [value], version=guard.version)
    added = ir.Node("", "Add", [sizes.outputs[0], zero], version=guard.version)
    made = ir.Node(
        "", "Reshape", [value, added.outputs[0]], attributes=[ir.AttrInt64("allowzero", 1)], version=guard.version
    )
    for node, name in ((sizes, "sizes"), (added, "checked"), (made, "guarded")):
        out = node.outputs[0]
        out.name = f"{zero.name}_{place}_{name}"
        out.dtype, out.shape = ir.DataType.INT64, ir.Shape([len(value.shape)])
        graph.append(node)
    made.outputs[0].type, made.outputs[0].shape = value.type, value.shape
    return made.outputs[0]


def _measured(guard: ir.Node) -> list[ir.Value]:
    """The tensors whose sizes a guard depends on; none if it depends on anything else."""
    found: dict[ir.Value, None] = {}
    pending, seen = [value for value in guard.inputs if value is not None], set()
    while pending:
        value = pending.pop()
        node = value.producer()
        if value in seen or ir.convenience.get_const_tensor(value) is not None:
            continue
        seen.add(value)
        if node is not None and node.op_type == "Shape" and node.inputs[0] is not None:
            found[node.inputs[0]] = None
        elif node is not None and node.op_type in _OF_SIZES:
            pending += [each for each in node.inputs if each is not None]
        else:
            return []
    return list(found)


def _ancestors(guard: ir.Node) -> set[ir.Node]:
    """What a guard waits for, itself included."""
    found: set[ir.Node] = set()
    pending = [guard]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found.add(node)
        inner = [each for graph in _graphs_of(node) for each in ir.traversal.RecursiveGraphIterator(graph)]
        ends = [value for graph in _graphs_of(node) for value in graph.outputs]
        read = [*ends, *(value for each in (node, *inner) for value in each.inputs if value is not None)]
        pending += [made for value in read if (made := value.producer()) is not None]
    return found


def _waits(node: ir.Node, guard: ir.Node, before: set[ir.Node], holders: dict[ir.Graph, ir.Node]) -> bool:
    """Whether a reader is to wait for a guard: it is in the same graph or in one inside it, and not before it."""
    holder: ir.Node | None = node
    while holder is not None and holder.graph is not guard.graph:
        holder = holders.get(holder.graph) if isinstance(holder.graph, ir.Graph) else None
    return holder is not None and holder not in before and node not in before and node.op_type != "Shape"
