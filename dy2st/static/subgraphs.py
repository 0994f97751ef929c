"""The graphs of a program: those of its branches and loops, their inputs and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx

from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.subgraph import graph_modules

OURS = (branch_op, loop_op)


def forget_other_users(module: fx.GraphModule) -> None:
    """A trace leaves among the users of a node such that are in no graph, or in another one: take them out."""
    for each in graph_modules(module):
        for node in each.graph.nodes:
            for user in [user for user in node.users if user.graph is not each.graph]:
                del node.users[user]


def held(module: fx.GraphModule, node: Any) -> Any:
    """What a ``get_attr`` node stands for."""
    found: Any = module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found


def body_of(module: fx.GraphModule, node: Any) -> fx.GraphModule:
    """The graph of an arm or a body, by the node that names it."""
    found = held(module, node)
    assert isinstance(found, fx.GraphModule)
    return found


def inputs_of(module: fx.GraphModule) -> list[fx.Node]:
    """The nodes of a graph's inputs."""
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def results_of(module: fx.GraphModule) -> Sequence[Any]:
    """What a graph gives back, one after the other."""
    output = next(n for n in reversed(module.graph.nodes) if n.op == "output")
    found: Any = output.args[0]
    return found  # type: ignore[no-any-return]


def is_result_of_ours(node: fx.Node) -> bool:
    """Whether a node takes one result of a branch or loop."""
    return bool(node.args) and getattr(node.args[0], "target", None) in OURS
