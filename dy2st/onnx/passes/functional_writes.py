"""An operator that writes to a tensor becomes the one that makes a new tensor, where nothing else sees the write.

``a.add_(b)`` is ``a.add(b)``, and what reads ``a`` behind it reads the result. That is so of a tensor that the graph
itself makes, or that its subgraph is given, and that has no views: other writes are left for torch's trace of the whole
program.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor

from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.subgraph import storage_of, written_inputs


def without_writes(graph: fx.Graph, *, inputs_are_own: bool) -> bool:
    """Replace the writes of a graph by new tensors; whether all could be.

    Args:
        graph: Of a program, or of one of its subgraphs.
        inputs_are_own: A write to an input of the graph is seen in the graph alone, as it is in a subgraph.
    """
    for node in list(graph.nodes):
        if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
            made = _functional(node)
            if made is None or not _is_seen_only_here(node.args[0], inputs_are_own):
                return False
            target, value = made
            with graph.inserting_after(node):
                new = graph.call_function(target, node.args, node.kwargs)
            new.meta = {**node.meta, "val": value}
            old: Any = node.args[0]
            node.replace_all_uses_with(new)
            behind = _behind(new)
            old.replace_all_uses_with(new, delete_user_cb=behind.__contains__)
            graph.erase_node(node)
    return True


def _behind(node: fx.Node) -> set[fx.Node]:
    """The nodes that come later in a graph."""
    found, each = set(), node.next
    while each.op != "root":
        found.add(each)
        each = each.next
    return found


def _is_seen_only_here(written: Any, inputs_are_own: bool) -> bool:
    """Whether a graph made a tensor and no other of its nodes has the same memory."""
    own = isinstance(written, fx.Node) and (inputs_are_own if written.op == "placeholder" else _is_new(written))
    memory = storage_of(written) if own else None
    return memory is not None and all(
        other is written or storage_of(other) != memory or written in written_inputs(other) or _is_new(other)
        for other in written.graph.nodes
    )


def _is_new(node: fx.Node) -> bool:
    """Whether a node's value has memory of its own, by its operator's schema.

    What describes the value may be that of an input. The schemas of operators that are written with others lie.
    """
    target = node.target
    if target is operator.getitem and isinstance(node.args[0], fx.Node):
        return node.args[0].target in (branch_op, loop_op)
    return (
        isinstance(target, OpOverload)
        and not target._can_decompose()
        and all(each.alias_info is None for each in target._schema.returns)
    )


def _functional(node: fx.Node) -> tuple[OpOverload, FakeTensor] | None:
    """The operator that makes what a node writes, and its result, which has to be of the same type and sizes."""
    target, like = node.target, getattr(node.args[0], "meta", {}).get("val") if node.args else None
    assert isinstance(target, OpOverload)
    name, overload = target._schema.name.partition("::")[2], target._overloadname
    packet = getattr(getattr(torch.ops, target.namespace), name.removesuffix("_"), None)
    found = getattr(packet, overload, None) if name.endswith("_") and not name.endswith("__") else None
    if found is None or not isinstance(like, FakeTensor) or len(written_inputs(node)) != 1:
        return None
    if [a.name for a in found._schema.arguments] != [a.name for a in target._schema.arguments]:
        return None
    values = fx.map_arg((node.args, node.kwargs), lambda each: each.meta.get("val"))
    with like.fake_mode:
        made = found(*values[0], **values[1])
    same = made.dtype == like.dtype and made.shape == like.shape and made.device == like.device
    return (found, made) if same and not found._schema.is_mutable else None
