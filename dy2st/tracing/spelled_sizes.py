"""Sizes that are numbers where an arm runs, since its test says so, spelled out in the graph of the arm.

    if x.shape[0] == 1:
        y = x.view(2, 4)        # of a tensor of n rows torch would not allow it

The capture knows what the test says. Who traces the arm's graph anew, such as torch's ONNX exporter, does not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from dy2st.tracing.size_ops import sized_op
from dy2st.tracing.subgraph import Subgraph, storage_of
from dy2st.tracing.tracer import Tracing

_SIZE = torch.ops.aten.sym_size.int


def spell_out(tracing: Tracing, arm: Subgraph) -> None:
    """Let the tensors from outside that an arm reads have the numbers for sizes that the arm knows of."""
    if arm.layer.found is None:
        return
    written = arm.written_outside()
    for node in arm.nodes_outside():
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and storage_of(node) not in written:
            with tracing.inside(arm.layer):
                sizes = [tracing.number_if_known(size) for size in value.shape]
            new = any(type(size) is int and type(old) is not int for size, old in zip(sizes, value.shape, strict=True))
            # onnxruntime takes no reshape to nothing and to sizes that it does not know.
            if new and not any(type(size) is int and size == 0 for size in sizes):
                _insert(tracing, arm.graph, node, sizes)


def _insert(tracing: Tracing, graph: fx.Graph, node: fx.Node, sizes: list[Any]) -> None:
    users = [user for user in node.users if user.graph is graph]
    with graph.inserting_before(next(iter(graph.nodes))):
        spelled: list[Any] = []
        for d, size in enumerate(sizes):
            if type(size) is int:
                spelled.append(size)
                continue
            spelled.append(graph.call_function(_SIZE, (node, d)))
            spelled[-1].meta["val"] = size
        made = graph.call_function(sized_op, (node, spelled))
    with tracing.untraced():
        made.meta["val"] = node.meta["val"].new_empty(sizes)
    for user in users:
        user.replace_input_with(node, made)
