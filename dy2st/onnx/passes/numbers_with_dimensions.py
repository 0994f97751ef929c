"""Operators along a dimension, given a number, which has none: torch takes 0 and -1 for one, and ONNX takes nothing.

Before::

    mean = aten.mean.dim(number, [0])

After::

    vector = aten.reshape(number, [1])
    mean = aten.mean.dim(vector, [0])
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

aten = torch.ops.aten
# Those that the exporter, or onnxruntime, does not take.
_ALONG = frozenset("all any flip index_fill mean scatter scatter_add".split())


def give_numbers_dimensions(graph: fx.Graph, node: fx.Node) -> None:
    """Give such an operator vectors of one element in place of numbers, and make a number of the result again."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return
    schema = node.target._schema
    values: list[Any] = [each.meta.get("val") for each in node.all_input_nodes]
    if schema.name.removeprefix("aten::") not in _ALONG or not any(map(_is_dimension, node.args[1:])):
        return
    if not all(isinstance(value, torch.Tensor) and value.dim() == 0 for value in values):
        return
    with graph.inserting_before(node):
        node.args = fx.map_arg(node.args, lambda each: _with_shape(graph, each, [1]))
    reduces = any(argument.name == "keepdim" for argument in schema.arguments)
    keeps = node.kwargs.get("keepdim") or any(argument is True for argument in node.args)
    if not reduces or keeps:
        value: Any = node.meta["val"]
        with value.fake_mode:
            node.meta["val"] = torch.empty([1], dtype=value.dtype)
        with graph.inserting_after(node):
            number = _with_shape(graph, node, [])
        node.replace_all_uses_with(number, delete_user_cb=lambda user: user is not number)


def _is_dimension(argument: Any) -> bool:
    """Whether an argument may be one dimension or several; without any, all are meant."""
    return isinstance(argument, (int, list, tuple)) and not isinstance(argument, bool)


def _with_shape(graph: fx.Graph, node: fx.Node, shape: list[int]) -> fx.Node:
    made = graph.call_function(aten.reshape.default, (node, shape))
    value: Any = node.meta["val"]
    with value.fake_mode:
        made.meta = {**node.meta, "val": torch.empty(shape, dtype=value.dtype)}
    return made
