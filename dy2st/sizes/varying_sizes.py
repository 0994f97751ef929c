"""Sizes that are others in each iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from dy2st.tracing.subgraph import Subgraph
from dy2st.tracing.tracer import Tracing, outside_the_trace

# The iterations for which sizes are compared, where they depend on its number.
_FIRST = range(3)


def vary(tracing: Tracing, body: Subgraph, counter: fx.Node, sizes: Iterable[Any]) -> bool:
    """Whether sizes that ``body`` computes are others in each iteration, by what can be told before it runs.

    They are taken to be if they depend on the values of tensors, or on chance, in another way in each iteration. Where
    they depend on the iteration's number (``counter``) alone, those of the first iterations are compared, for the
    example's sizes. (What can't be told fails when the program runs, as it does in onnxruntime.)
    """
    first = body.layer.first_symbol
    younger = [size for size in sizes if tracing.is_younger(size, first)]
    made = {symbol: node for node in body.graph.nodes for symbol in node.meta.get("unbacked_bindings", {})}
    symbols = [s for size in younger for s in free_unbacked_symbols(size) if tracing.is_younger_symbol(s, first)]
    if any(symbol not in made for symbol in symbols):
        return True
    needed = _needed(body.graph, [made[symbol] for symbol in symbols])
    if any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in needed):
        return True
    if not any(node.op == "placeholder" for node in needed):
        return False
    if any(node.op == "placeholder" and node is not counter for node in needed) or _reads_data(body.graph, needed):
        return True
    example = tracing.example_sizes()
    try:
        known = {tuple(_sizes(example, younger, made, needed, counter, i)) for i in _FIRST}
    except Exception:  # noqa: BLE001  # an operator that takes no values, a size that the example has not
        return False
    return len(known) > 1


def _needed(graph: fx.Graph, ends: Sequence[fx.Node]) -> list[fx.Node]:
    """The nodes of a graph that some of its nodes need, and these, in order."""
    found: set[fx.Node] = set()
    waiting = list(ends)
    while waiting:
        node = waiting.pop()
        if node.graph is graph and node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return [node for node in graph.nodes if node in found]


def _reads_data(graph: fx.Graph, nodes: Iterable[fx.Node]) -> bool:
    outside = (used for node in nodes for used in node.all_input_nodes if used.graph is not graph)
    return any(not isinstance(used.meta.get("val"), (int, torch.SymInt)) for used in outside)


def _sizes(
    example: dict[sympy.Symbol, sympy.Expr],
    sizes: Sequence[torch.SymInt],
    made: dict[sympy.Symbol, fx.Node],
    nodes: Iterable[fx.Node],
    counter: fx.Node,
    iteration: int,
) -> list[sympy.Expr]:
    """The sizes of one iteration, for the sizes of the example."""
    values: dict[fx.Node, Any] = {}

    def value(node: fx.Node) -> Any:
        if node not in values:
            val = node.meta["val"]
            values[node] = int(val.node.expr.xreplace(example)) if isinstance(val, torch.SymInt) else val
        return values[node]

    with outside_the_trace():
        values[counter] = torch.tensor(iteration)
        for node in nodes:
            if node is not counter and callable(node.target):
                args, kwargs = fx.node.map_arg((node.args, node.kwargs), value)
                values[node] = node.target(*args, **kwargs)
    found = {symbol: sympy.Integer(int(values[node])) for symbol, node in made.items() if node in values}
    return [size.node.expr.xreplace(found | example) for size in sizes]
