"""Which nodes of a graph something is made of, or that do something beside."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

ATEN = torch.ops.aten
# What torch.export adds for its own checks of a trace; the values are what they are.
_CHECKS = (
    ATEN._assert_tensor_metadata.default,
    ATEN.sym_constrain_range.default,
    ATEN.sym_constrain_range_for_size.default,
)
# Operators of Python's own.
INFIX = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.truediv: "/",
    operator.pow: "**",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.and_: "&",
    operator.or_: "|",
}
_PURE = (*INFIX, operator.getitem, ATEN.sym_size.int, ATEN.sym_numel.default, ATEN.full.default, ATEN.clone.default)


def needed_nodes(graph: fx.Graph) -> set[fx.Node]:
    """The nodes that something is made of, or that do something beside."""
    found: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.target in _CHECKS or _is_certain(node):
            continue
        if node.target not in _PURE or any(user in found for user in node.users):
            found.add(node)
    return found


def _is_certain(node: fx.Node) -> bool:
    """Whether a node asserts that a size is not negative."""
    if node.target is not ATEN._assert_scalar.default:
        return False
    test: Any = node.args[0]
    size: Any = test.args[0] if isinstance(test, fx.Node) and test.target is operator.ge and test.args[1] == 0 else None
    return getattr(size, "target", None) in (ATEN.sym_size.int, ATEN.sym_numel.default)
