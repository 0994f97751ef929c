"""Gradients: what a ``torch.no_grad()`` block computes is detached in the program.

A capture runs without autograd, and switching it on and off leaves no trace in a graph. So the capture remembers for
each node whether the user's code had gradients on; at the end, what was made without them is detached where it meets
what was made with them. An operator that writes in place without gradients leaves its target's gradient as it was:
it works on a detached alias of it.

Values that a branch or loop only hands on are no results of an operator of the user's: they keep their gradient, as
in eager code, whatever the mode is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from dy2st.errors import StagingError
from dy2st.tracing.grad_mode import STOPPED
from dy2st.tracing.subgraph import written_inputs

DETACH = torch.ops.aten.detach.default


def _differentiable(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)


def stop_gradients(module: Any, graph: fx.Graph) -> bool:
    """Detach in a graph, and in the subgraphs of ``module`` that it names, what was computed without gradients.

    Returns whether the graph itself was changed; changed subgraphs are recompiled.
    """
    changed = False
    inner: dict[str, fx.GraphModule] = {}
    for node in list(graph.nodes):
        if node.op == "get_attr" and isinstance(getattr(module, str(node.target), None), fx.GraphModule):
            inner[str(node.target)] = getattr(module, str(node.target))
        elif STOPPED in node.meta and written_inputs(node):
            changed |= _write_without(graph, node)
    for node in list(graph.nodes):
        if STOPPED not in node.meta or not _differentiable(node):
            continue
        users = [user for user in node.users if STOPPED not in user.meta]
        if users:
            with graph.inserting_after(node):
                detached = _detach(graph, node, node)
            for user in users:
                user.replace_input_with(node, detached)
            changed = True
    for submodule in inner.values():
        if stop_gradients(submodule, submodule.graph):
            submodule.recompile()
    return changed


def _detach(graph: fx.Graph, node: fx.Node, place: fx.Node) -> fx.Node:
    """``node`` without its gradient; ``place`` is where the new node comes from."""
    made = graph.call_function(DETACH, (node,))
    made.meta = {k: v for k, v in place.meta.items() if k != STOPPED}
    made.meta["val"] = node.meta["val"]
    return made


def _write_without(graph: fx.Graph, node: fx.Node) -> bool:
    """``node`` writes in place: let it write to a detached alias of its target, which stands for the result.

    Returns whether the graph was changed.
    """
    targets = [t for t in dict.fromkeys(written_inputs(node)) if _differentiable(t)]
    if not targets:
        return False
    (target, *others) = targets
    if others:
        raise StagingError(
            "an operator writes to several tensors at once without gradients", hint="write to one tensor after another"
        )
    with graph.inserting_before(node):
        alias = _detach(graph, target, node)
        written = graph.node_copy(node, lambda n: alias if n is target else n)
    written.meta = dict(node.meta)
    # The node itself, which later ones and the trace know as the written tensor, hands it on.
    node.target = torch.ops.aten.alias.default
    node.args, node.kwargs = (target,), {}
    del node.meta[STOPPED]
    return True


def detached_results(result: Any, node_of: Any) -> Any:
    """What a program returns, detached where it was computed without gradients."""

    def leaf(value: torch.Tensor) -> torch.Tensor:
        node = node_of(value)
        while node is not None and STOPPED in node.meta and written_inputs(node):
            (node,) = written_inputs(node)[:1]
        return value.detach() if node is not None and STOPPED in node.meta and _differentiable(node) else value

    return pytree.tree_map_only(torch.Tensor, leaf, result)
