"""Scaled dot-product attention as torch's exporter has it: of two batch dimensions, with a scale that is a single.

Where a row may attend to nothing, torch gives 0. The exporter's form gives NaN, or the mean of what is masked.

Source: the documentation of torch.nn.functional.scaled_dot_product_attention.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._ops import OpOverload

aten = torch.ops.aten
# Batch, heads, positions, features.
_RANK = 4


def write_out_attention(graph: fx.Graph, node: fx.Node) -> None:
    """Scale the queries by a number that has more digits; give attention four dimensions, and rows of nothing a 0."""
    if node.target is aten.scaled_dot_product_attention.default:
        _empty_rows(graph, node)
        _scale_queries(graph, node)
        _attend_by_two_batches(graph, node)


def _empty_rows(graph: fx.Graph, node: fx.Node) -> None:
    """Fill the rows of the result of which all keys are masked."""
    mask: Any = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    if not isinstance(mask, fx.Node):
        return
    value, users = node.meta["val"], list(node.users)
    is_bool = mask.meta["val"].dtype is torch.bool
    with graph.inserting_after(node):
        blocked = (
            _call(graph, aten.logical_not.default, mask) if is_bool else _call(graph, aten.eq.Scalar, mask, -math.inf)
        )
    with graph.inserting_after(blocked):
        empty = _call(graph, aten.all.dim, blocked, -1, True)
    with graph.inserting_after(empty):
        filled = graph.call_function(aten.masked_fill.Scalar, (node, empty, 0.0))
    filled.meta = {**node.meta, "val": value}
    node.replace_all_uses_with(filled, delete_user_cb=users.__contains__)


def _scale_queries(graph: fx.Graph, node: fx.Node) -> None:
    scale = node.kwargs.get("scale")
    if isinstance(scale, float) and node.meta["val"].dtype is torch.float64 and float(np.float32(scale)) != scale:
        with graph.inserting_before(node):
            node.update_arg(0, _call(graph, aten.mul.Scalar, node.args[0], scale))
        node.update_kwarg("scale", 1.0)


def _attend_by_two_batches(graph: fx.Graph, node: fx.Node) -> None:
    """Give queries, keys and values four dimensions, and take the others from the result.

    A mask is spread over the batches from the right: it fits as it is, unless batches are made one.
    """
    *given, mask = (*node.args[:3], node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask"))
    ranks = {each.meta["val"].dim() for each in given if isinstance(each, fx.Node)}
    if len(ranks) != 1 or ranks == {_RANK}:
        return
    (rank,) = ranks
    lead = node.meta["val"].shape[: rank - _RANK + 1] if rank > _RANK else ()
    masked = isinstance(mask, fx.Node) and mask.meta["val"].dim() >= _RANK
    if rank > _RANK and (masked or not all(isinstance(size, int) for size in lead)):
        return
    with graph.inserting_before(node):
        for i, each in enumerate(given):
            if rank > _RANK:
                node.update_arg(i, _call(graph, aten.flatten.using_ints, each, 0, rank - _RANK))
            else:
                for _ in range(_RANK - rank):
                    each = _call(graph, aten.unsqueeze.default, each, 0)  # noqa: PLW2901 - one more dimension
                node.update_arg(i, each)
    users, value = list(node.users), node.meta["val"]
    with graph.inserting_after(node):
        if rank > _RANK:
            back = graph.call_function(aten.unflatten.int, (node, 0, list(lead)))
        else:
            back = graph.call_function(aten.squeeze.dims, (node, list(range(_RANK - rank))))
    back.meta = {**node.meta, "val": value}
    with value.fake_mode:
        node.meta["val"] = value.flatten(0, rank - _RANK) if rank > _RANK else value[(None,) * (_RANK - rank)]
    node.replace_all_uses_with(back, delete_user_cb=users.__contains__)


def _call(graph: fx.Graph, target: OpOverload, argument: Any, *others: Any) -> fx.Node:
    made = graph.call_function(target, (argument, *others))
    value = argument.meta["val"]
    with value.fake_mode:
        made.meta = {**argument.meta, "val": target(value, *others)}
    return made
