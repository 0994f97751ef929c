"""Tensors whose values are known while a graph is traced: those that are computed of constants alone.

A trace has fake tensors, but a table that a model makes of ``torch.linspace`` is the same in every run. Whoever needs
its values, as code of numpy's does, may have them: the nodes that it is computed by are carried out.

The rule. All of these nodes are in the graph that is traced at present, and none of what they give is written to there.
What an arm or a loop's body has from outside is not known in it: a later line may write to it, and then the next
iteration has something else.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from dy2st.tracing.grad_mode import without_gradients
from dy2st.tracing.subgraph import storage_of, written_inputs
from dy2st.tracing.tracer import Tracing, outside_the_trace

# So many operators are carried out for one value, and so many elements are made.
_MOST_NODES = 10_000
_MOST_ELEMENTS = 1 << 24
# Of an operator with several results, one; and what sizes are computed by, which an operator may have found itself.
_OF_SIZES = frozenset((operator.getitem, operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod))
# It writes no values.
_DETACHED = torch.ops.aten.detach_.default
# What copies a tensor that is written out in the code, as ``torch.tensor([1, 2])`` is.
FRESH = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)


class _UnknownError(Exception):
    """A node is data-dependent."""


def known_value(tracing: Tracing, tensor: torch.Tensor, *, fixed: bool) -> torch.Tensor | None:
    """A copy of a tensor of constants, outside of the trace; None for any other tensor.

    ``fixed`` says that tensors of the world around are constants, too: those of globals, closures and attributes.
    """
    node = tracing.node_of(tensor)
    if node is None:
        if not fixed or type(tensor) is not torch.Tensor:
            return None
        with outside_the_trace():
            return tensor.detach().clone()
    if node.graph is not tracing.layer.graph:
        return None
    try:
        order = _computed_by(node)
        if not fixed and not all(map(_is_literal, order)):
            return None
        values: dict[fx.Node, Any] = {}
        with outside_the_trace(), without_gradients():
            for each in order:
                values[each] = _carried_out(tracing, each, values)
            found: torch.Tensor = values[node].clone()
    except _UnknownError:
        return None
    return found


def _computed_by(node: fx.Node) -> list[fx.Node]:
    """The nodes that a node is computed by, itself last, in their order.

    Raises:
        _UnknownError: one of them is data-dependent, or is written to.
    """
    found, left = {node}, [node]
    while left:
        each = left.pop()
        if each.graph is not node.graph or len(found) > _MOST_NODES or not _is_constant(each):
            raise _UnknownError
        for source in each.all_input_nodes:
            if source not in found:
                found.add(source)
                left.append(source)
    storages = {storage_of(each) for each in found}
    for each in node.graph.nodes:
        if each.target is not _DETACHED and any(storage_of(target) in storages for target in written_inputs(each)):
            raise _UnknownError
    return [each for each in node.graph.nodes if each in found]


def _is_constant(node: fx.Node) -> bool:
    """Whether a node gives the same in every run if what it reads does."""
    value = node.meta.get("val")
    sizes: tuple[Any, ...] = tuple(value.shape) if isinstance(value, torch.Tensor) else ()
    if math.prod(size for size in sizes if isinstance(size, int)) > _MOST_ELEMENTS:
        return False
    if node.op == "get_attr":
        return True
    if node.op == "call_function" and node.target in _OF_SIZES:
        return True
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    if node.target is _DETACHED:
        return True
    draws = torch.Tag.nondeterministic_seeded in node.target.tags
    return not draws and not node.target._schema.is_mutable and node.target.namespace in ("aten", "prims")


def _is_literal(node: fx.Node) -> bool:
    """Whether a node is not a tensor of the world around: one that is written out in the code is copied at once."""
    return node.op != "get_attr" or all(user.target in FRESH for user in node.users)


def _carried_out(tracing: Tracing, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
    if node.op == "get_attr":
        value = getattr(tracing.tracer.root, str(node.target), None)
        if type(value) is not torch.Tensor:
            raise _UnknownError
        return value
    assert callable(node.target)
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
    return node.target(*args, **kwargs)
