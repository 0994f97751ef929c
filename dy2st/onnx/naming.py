"""Names of values, each used once in a whole model.

ONNX wants a name in a subgraph to differ from all around it, those of values that come later included.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir


def make_names_unique(model: ir.Model) -> None:
    """Rename values of subgraphs whose names are taken; names of the main graph stay."""
    taken: set[str] = {value.name for value in model.graph.initializers.values() if value.name}
    main, *inner = _graphs(model.graph)
    taken |= {value.name for value in _values(main) if value.name}
    for graph in inner:
        for value in _values(graph):
            name, count = value.name or "value", 2
            while name in taken:
                name, count = f"{value.name or 'value'}_{count}", count + 1
            value.name = name
            taken.add(name)


def _graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """A graph, then those inside it."""
    yield graph
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _graphs(attribute.as_graph())


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from node.outputs
