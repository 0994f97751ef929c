"""Slices as Python writes them: ``x[1:-1, 2:]`` is one call, and two operators in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

ATEN = torch.ops.aten
_END = 2**63 - 1


def is_slice(node: Any) -> bool:
    """Whether a node slices its operand in a dimension that is written out, one by one."""
    if not isinstance(node, fx.Node) or node.target is not ATEN.slice.Tensor or node.kwargs or len(node.args) > 4:
        return False
    return len(node.args) > 1 and type(node.args[1]) is int and node.args[1] >= 0


def is_in_next(node: fx.Node) -> bool:
    """Whether a slice is a part of the one that the next node makes of it."""
    following = node.next
    if not (is_slice(node) and is_slice(following)) or list(node.users) != [following] or following.args[0] is not node:
        return False
    dims: Any = node.args[1], following.args[1]
    return bool(dims[0] < dims[1])


def sliced(node: fx.Node, value: Callable[[Any], str]) -> str:
    """The expression for a slice and for those that are a part of it; ``value`` gives the text of an argument."""
    parts: dict[Any, str] = {}
    while True:
        source, dim, *ends = node.args
        start, end = (*ends, None, None)[:2]
        first = "" if start is None or _is(start, 0) else value(start)
        last = "" if end is None or _is(end, _END) else value(end)
        parts[dim] = f"{first}:{last}"
        if not (isinstance(source, fx.Node) and is_in_next(source)):
            break
        node = source
    index = ", ".join(parts.get(dim, ":") for dim in range(max(parts) + 1))
    return f"{value(source)}[{index}]"


def _is(number: Any, wanted: int) -> bool:
    return type(number) is int and number == wanted
