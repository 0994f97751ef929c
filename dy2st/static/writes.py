"""In which order a program writes to its inputs, draws random numbers, and comes to the places where eager raises."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import fx

from dy2st.static.clones import Clones
from dy2st.static.subgraphs import body_of
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.guards import require_op
from dy2st.tracing.subgraph import graph_modules


def writes_in_order(module: fx.GraphModule, clones: Clones) -> tuple[frozenset[fx.Node], frozenset[fx.Node]]:
    """The nodes that write to an input, and those of them that a guard may come after."""
    found = clones.written_inputs(cloning=True)
    writers = frozenset(node for nodes in found.values() for node in nodes)
    return writers, frozenset(_before_guards(module)) & writers if writers and has_guards(module) else frozenset()


def has_guards(module: fx.GraphModule) -> bool:
    """Whether a program has places where eager raises."""
    return any(node.target is require_op for each in graph_modules(module) for node in each.graph.nodes)


def draws_before_guards(module: fx.GraphModule) -> bool:
    """Whether a guard may come after random numbers have been drawn."""
    return any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in _before_guards(module))


def _before_guards(module: fx.GraphModule) -> list[fx.Node]:
    """The nodes behind which a guard stands, on some path."""
    nodes = list(_in_order(module))
    last = max((i for i, node in enumerate(nodes) if node.target is require_op), default=0)
    return nodes[:last]


def _in_order(module: fx.GraphModule) -> Iterator[fx.Node]:
    """All nodes, those of arms one after the other; those of loops twice: what comes first comes again."""
    for node in module.graph.nodes:
        if node.target is branch_op:
            for arm in node.args[1:3]:
                yield from _in_order(body_of(module, arm))
        elif node.target is loop_op:
            for _ in range(2):
                yield from _in_order(body_of(module, node.args[0]))
        yield node
