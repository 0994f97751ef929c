"""What a traced step has too much of: values that nothing uses, and what branches and loops take and give for nothing.

A forward loop keeps all that it carries, before it is known what the backward loop needs.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from dy2st.tracing.graph_ops import branch_op, loop_op

IDENTITIES = (torch.ops.aten.detach.default, torch.ops.aten.alias.default)


def prune(module: fx.GraphModule) -> None:
    """Take out of a graph, and those inside it, what nothing uses."""
    for inner in module.modules():
        if isinstance(inner, fx.GraphModule):
            _drop_identities(inner.graph)
    while _pruned(module):
        pass
    for inner in list(module.modules()):
        if isinstance(inner, fx.GraphModule):
            named = {node.target for node in inner.graph.nodes if node.op == "get_attr"}
            for name in [name for name, _ in inner.named_children() if name not in named]:
                delattr(inner, name)
            inner.graph.lint()
    module.recompile()


def _drop_identities(graph: fx.Graph) -> None:
    for node in list(graph.nodes):
        if node.target in IDENTITIES:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _pruned(module: fx.GraphModule) -> bool:
    """One round; whether something was taken out."""
    changed = module.graph.eliminate_dead_code(_stays)
    for node in list(module.graph.nodes):
        if node.target is branch_op:
            arms = [getattr(module, str(arm.target)) for arm in node.args[1:3]]
            changed |= _prune_results(node, arms, 0, 0)
            changed |= _prune_operands(node, arms, 3, 0)
        elif node.target is loop_op:
            body = getattr(module, str(node.args[0].target))
            changed |= _prune_results(node, [body], 1, len(node.args[3]))
            changed |= _prune_operands(node, [body], 4, 1 + len(node.args[3]))
    for inner in [each for _, each in module.named_children() if isinstance(each, fx.GraphModule)]:
        changed |= _pruned(inner)
    return changed


def _stays(node: fx.Node) -> bool:
    """Whether a node that has no users does something: what a user's own derivative does may write in place."""
    target = node.target
    return node.op in ("placeholder", "output") or (
        isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable
    )


def _prune_results(node: fx.Node, graphs: Sequence[fx.GraphModule], first: int, kept: int) -> bool:
    """Drop results that nothing takes: of a loop only rows, which are those from ``kept`` on."""
    outputs = [next(n for n in reversed(each.graph.nodes) if n.op == "output") for each in graphs]
    count = len(outputs[0].args[0]) - first
    used = {user.args[1] for user in node.users}
    stay = [i for i in range(count) if i < kept or i in used]
    if len(stay) == count or any(user.target is not operator.getitem for user in node.users):
        return False
    for output in outputs:
        results: Any = output.args[0]
        output.args = ((*results[:first], *(results[first + i] for i in stay)),)
    for user in list(node.users):
        index: Any = user.args[1]
        user.args = (node, stay.index(index))
    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        node.meta["val"] = tuple(value[i] for i in stay)
    if node.target is loop_op:
        node.args = (*node.args[:6], len(stay) - kept)
    return True


def _prune_operands(node: fx.Node, graphs: Sequence[fx.GraphModule], place: int, first: int) -> bool:
    """Drop operands that no subgraph uses."""
    inputs = [[n for n in each.graph.nodes if n.op == "placeholder"][first:] for each in graphs]
    operands: Any = node.args[place]
    stay = [i for i in range(len(operands)) if any(each[i].users for each in inputs)]
    if len(stay) == len(operands):
        return False
    for each, graph in zip(inputs, graphs, strict=True):
        for i in set(range(len(operands))) - set(stay):
            graph.graph.erase_node(each[i])
    args = list(node.args)
    args[place] = tuple(operands[i] for i in stay)
    node.args = tuple(args)
    return True
