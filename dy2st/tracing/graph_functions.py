"""Graphs with subgraphs: functions that an operator is given, put into a module, copied into a graph, taken out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from dy2st.tracing.subgraph import call_node


def add_module(module: fx.GraphModule, prefix: str, made: fx.GraphModule) -> str:
    """Put a subgraph into a module under a name that is free: the prefix and a number."""
    n = 0
    while hasattr(module, f"{prefix}_{n}"):
        n += 1
    module.add_module(f"{prefix}_{n}", made)
    return f"{prefix}_{n}"


def variable_of(node: fx.Node) -> str:
    """The variable that an input of a body is, as far as it is called by one: by its name and a number."""
    return re.sub(r"_\d+$", "", node.name)


def new_inputs(graph: fx.Graph, like: list[Any], prefix: str, variables: Sequence[str] = ()) -> list[fx.Node]:
    """An input of a graph for each of these example values, called by a variable or the prefix, and a number."""
    made = []
    for i, value in enumerate(like):
        node = graph.placeholder(f"{variables[i] if i < len(variables) else prefix}_{i}")
        node.meta["val"] = value
        made.append(node)
    return made


def value_of(argument: Any) -> Any:
    """The example value of a node; anything else is its own."""
    return argument.meta["val"] if isinstance(argument, fx.Node) else argument


def loop_scalars(graph: fx.Graph) -> tuple[torch.Tensor, torch.Tensor]:
    """What an iteration's number and a flag are in a graph."""
    with next(v.fake_mode for node in graph.nodes if hasattr(v := node.meta.get("val"), "fake_mode")):
        return torch.empty((), dtype=torch.int64), torch.empty((), dtype=torch.bool)


def own_copy(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """A copy of a node's value."""
    return call_node(graph, torch.ops.aten.clone.default, (node,), node.meta["val"])


def inlined(graph: fx.Graph, module: fx.GraphModule, arguments: list[Any]) -> list[fx.Node]:
    """The nodes of a subgraph, copied into a graph; its results."""
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    results = graph.graph_copy(module.graph, dict(zip(placeholders, arguments, strict=True)))
    found = list(results) if isinstance(results, (list, tuple)) else [results]
    return [n for n in found if isinstance(n, fx.Node)]


def erase_with_functions(module: fx.GraphModule, node: fx.Node, functions: Sequence[Any]) -> None:
    """Erase an operator that nothing reads any more, with the subgraphs that are its alone."""
    module.graph.erase_node(node)
    for function in dict.fromkeys(functions):
        if not function.users:
            module.graph.erase_node(function)
            if all(each.op != "get_attr" or each.target != function.target for each in module.graph.nodes):
                delattr(module, str(function.target))
