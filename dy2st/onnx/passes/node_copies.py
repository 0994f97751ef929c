"""Copies of nodes of a graph: what computes some of its values, from others that are given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import onnx_ir as ir

Operands = Callable[[ir.Node], Sequence["ir.Value | None"]]


def own(node: ir.Node) -> Sequence[ir.Value | None]:
    """The operands that a node has."""
    return node.inputs


def needed_for(
    graph: ir.Graph, targets: Iterable[ir.Value], known: Collection[ir.Value], operands: Operands = own
) -> list[ir.Node]:
    """The nodes of a graph that compute values, where some are known; in order."""
    wanted = {value for value in targets if value not in known}
    found = []
    for node in reversed(list(graph)):
        if any(out in wanted for out in node.outputs):
            found.append(node)
            wanted.update(value for value in operands(node) if value is not None and value not in known)
    return found[::-1]


def copies(nodes: Iterable[ir.Node], known: dict[ir.Value, ir.Value], operands: Operands = own) -> Iterator[ir.Node]:
    """Copies of nodes without subgraphs, which read what ``known`` says for their operands; it takes their outputs."""
    for node in nodes:
        made = ir.Node(
            node.domain,
            node.op_type,
            [known.get(value, value) if value is not None else None for value in operands(node)],
            attributes=node.attributes.values(),
            num_outputs=len(node.outputs),
            version=node.version,
        )
        made.metadata_props.update(node.metadata_props)
        for old, new in zip(node.outputs, made.outputs, strict=True):
            new.name, new.type, new.shape = old.name, old.type, old.shape
            known[old] = new
        yield made
