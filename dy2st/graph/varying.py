"""Sizes that may be others in each iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

if TYPE_CHECKING:
    from dy2st.graph.region import Region
    from dy2st.graph.tracing import Tracing


def may_vary(tracing: Tracing, body: Region, sizes: Iterable[Any]) -> bool:
    """Whether a size that ``body`` computes depends on what is another in each iteration: its inputs, or chance."""
    first = body.layer.first_symbol
    younger = {s for size in sizes if tracing.is_younger(size, first) for s in free_unbacked_symbols(size)}
    made = {symbol: node for node in body.graph.nodes for symbol in node.meta.get("unbacked_bindings", {})}
    waiting = []
    for symbol in younger:
        if symbol in made:
            waiting.append(made[symbol])
        elif tracing.is_younger_symbol(symbol, first):
            return True
    seen: set[fx.Node] = set()
    while waiting:
        node = waiting.pop()
        if node.graph is not body.graph:
            continue
        if node.op == "placeholder" or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return True
        if node not in seen:
            seen.add(node)
            waiting += node.all_input_nodes
    return False
