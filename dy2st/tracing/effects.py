"""What the nodes of a graph do beside giving values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import fx

from dy2st.tracing.guards import require_op
from dy2st.tracing.messages import say_op
from dy2st.tracing.subgraph import written_inputs

_EFFECTS = (require_op, say_op)


def have_effects(nodes: Iterable[fx.Node], modules: Mapping[str, Any]) -> bool:
    """Whether nodes write to what none of them has made, draw random numbers, print, or may fail.

    ``modules`` are the subgraphs that they may name, which are looked at too.
    """
    made: set[fx.Node] = set()
    for node in nodes:
        if any(target not in made for target in written_inputs(node)) or node.target in _EFFECTS:
            return True
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return True
        inner = modules.get(str(node.target)) if node.op == "get_attr" else None
        if isinstance(inner, fx.GraphModule) and have_effects(inner.graph.nodes, dict(inner.named_children())):
            return True
        made.add(node)
    return False
