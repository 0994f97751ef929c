"""Rows written one by one: ``out[t] = h`` in a loop over ``t`` becomes rows that the loop stacks.

Carrying ``out`` through the loop would copy it in every iteration. Where the body writes one row of it per iteration,
at the iteration's own index (plus a constant), and reads it nowhere, the written rows are all there is to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from dy2st.tracing.grad_mode import STOPPED, WORKED_ON, emitting
from dy2st.tracing.subgraph import Subgraph, call_node, storage_of, write_into
from dy2st.tracing.tracer import Tracing, same_size

ITEM = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)
# On the write of rows that a loop has stacked: the dimension, and the number of the first row.
ROWS = "dy2st_rows"


@dataclass
class RowWrite:
    """``base.select(dim, iteration + start).copy_(value)``, the only use of ``base`` in a body."""

    base: fx.Node
    dim: int
    start: int
    value: fx.Node
    select: fx.Node
    copy: fx.Node

    def remove(self, subgraph: Subgraph) -> fx.Node:
        """Take the write out of the body; the node of the row that it wrote."""
        like, graph = self.select.meta["val"], subgraph.graph
        with graph.inserting_before(self.copy), subgraph.tracing.untraced():
            row, value = self.value, self.value.meta["val"]
            if value.dtype is not like.dtype:
                row = call_node(graph, torch.ops.aten.to.dtype, (row, like.dtype), value.to(like.dtype))
            if len(value.shape) != len(like.shape) or not all(map(same_size, value.shape, like.shape)):
                shape = [s if isinstance(s, int) else -1 for s in like.shape]
                wide = torch.empty(like.shape, dtype=like.dtype)
                row = call_node(graph, torch.ops.aten.expand.default, (row, shape), wide)
            row = call_node(graph, torch.ops.aten.clone.default, (row,), torch.empty(like.shape, dtype=like.dtype))
            row.meta[WORKED_ON] = True
        graph.erase_node(self.copy)
        graph.erase_node(self.select)
        return row

    @emitting()
    def write_back(self, tracing: Tracing, rows: torch.Tensor, *, all_rows: bool) -> None:
        """After the loop, in the subgraph around: put the rows where they belong."""
        with tracing.untraced():
            like = self.base.meta["val"]
            base = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
        tracing.track(base, fx.Proxy(self.base, tracing.tracer))
        # The node's own tensor is still the one that the user's code holds.
        self.base.meta["val"] = like
        moved = rows if self.dim == 0 else torch.movedim(rows, 0, self.dim)
        if not (all_rows and self.start == 0):
            end = rows.shape[0] + self.start
            before = torch.ops.aten.slice.Tensor(base, self.dim, 0, self.start)
            after = torch.ops.aten.slice.Tensor(base, self.dim, end, None)
            parts = [moved, after] if self.start == 0 else [before, moved, after]
            moved = torch.cat(parts, self.dim)
        write_into(tracing, self.base, tracing.proxy_of(moved)).meta[ROWS] = self.dim, self.start


def row_write(subgraph: Subgraph, base: fx.Node, views: list[fx.Node], counter: fx.Node) -> RowWrite | None:
    """The one write of a row to ``base`` in a loop's body, or None if there is more to it."""
    if views:
        return None
    users = [u for u in base.users if u.graph is subgraph.graph]
    if len(users) != 1 or users[0].target is not torch.ops.aten.select.int or users[0].args[0] is not base:
        return None
    select = users[0]
    copies = list(select.users)
    if len(copies) != 1 or copies[0].target is not torch.ops.aten.copy_.default or copies[0].args[0] is not select:
        return None
    copy = copies[0]
    if STOPPED in copy.meta:  # a write without gradients leaves those of the other rows as they are
        return None
    value = copy.args[1]
    start = _offset(select.args[2], counter)
    if start is None or copy.users or not isinstance(value, fx.Node) or storage_of(value) == storage_of(base):
        return None
    dim = select.args[1]
    assert isinstance(dim, int)
    rank = base.meta["val"].dim()
    return RowWrite(base, dim % rank, start, value, select, copy)


def _offset(index: Any, counter: fx.Node) -> int | None:
    """The constant by which an index is ahead of the iteration number, or None."""
    if not isinstance(index, fx.Node) or index.target not in ITEM:
        return None
    source = index.args[0]
    if source is counter:
        return 0
    if isinstance(source, fx.Node) and source.target is torch.ops.aten.add.Tensor and len(source.args) == 2:
        for one, other in (source.args, source.args[::-1]):
            if one is counter and isinstance(other, fx.Node) and other.target is torch.ops.aten.full.default:
                size, fill = other.args[:2]
                if size == [] and isinstance(fill, int) and fill >= 0:
                    return fill
    return None
