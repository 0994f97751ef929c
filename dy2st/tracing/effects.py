"""What the nodes of a graph do beside giving values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from dy2st.tracing.guards import require_op
from dy2st.tracing.messages import say_op
from dy2st.tracing.subgraph import written_inputs

_EFFECTS = (require_op, say_op)
# Operators that fail where an index is out of range.
_LOOKING_UP = frozenset("embedding gather index index_select select take".split())


def have_effects(
    nodes: Iterable[fx.Node], modules: Mapping[str, Any], within: Callable[[fx.Node], bool] = lambda _: False
) -> bool:
    """Whether nodes write to what none of them has made, draw random numbers, print, or may fail.

    ``modules`` are the subgraphs that they may name, which are looked at too. ``within`` says of a node that looks
    something up whether it is there in any case.
    """
    made: set[fx.Node] = set()
    for node in nodes:
        if any(target not in made for target in written_inputs(node)) or node.target in _EFFECTS:
            return True
        if _may_miss(node) and not within(node):
            return True
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return True
        inner = modules.get(str(node.target)) if node.op == "get_attr" else None
        if isinstance(inner, fx.GraphModule) and have_effects(inner.graph.nodes, dict(inner.named_children())):
            return True
        made.add(node)
    return False


def _may_miss(node: fx.Node) -> bool:
    """Whether a node looks something up at a place that is data."""
    packet = getattr(node.target, "overloadpacket", None)
    if getattr(packet, "__name__", "") not in _LOOKING_UP:
        return False
    places = [each for each in pytree.tree_leaves(node.args[1:]) if isinstance(each, fx.Node)]
    return any(getattr(place.meta.get("val"), "dtype", None) is not torch.bool for place in places)
