"""Normalisations of half-precision inputs with float32 weights, which ONNX has not: they run in float32.

torch's kernels take such a mixture (it is what autocast makes), compute in float32 and round the result; casts around
the operator say the same.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten
NORMS = (
    aten.layer_norm.default,
    aten.native_layer_norm.default,
    aten.group_norm.default,
    aten.native_group_norm.default,
    aten.batch_norm.default,
    aten.instance_norm.default,
)
HALVES = (torch.float16, torch.bfloat16)


def widen_mixed_norm(graph: fx.Graph, node: fx.Node) -> None:
    """Put casts around an operator that is such a normalisation."""
    if node.target in NORMS and _is_mixed(node):
        _widen(graph, node)


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, fx.Node) else argument


def _is_mixed(node: fx.Node) -> bool:
    given = [value for value in map(_value, node.args) if isinstance(value, torch.Tensor)]
    return given[0].dtype in HALVES and any(value.dtype is torch.float32 for value in given[1:])


def as_dtype(graph: fx.Graph, node: fx.Node, dtype: torch.dtype) -> fx.Node:
    """A node's value in another dtype, where the graph inserts now."""
    made = graph.call_function(aten.to.dtype, (node, dtype))
    value = node.meta["val"]
    with value.fake_mode:
        made.meta = {**node.meta, "val": torch.empty_strided(value.shape, value.stride(), dtype=dtype)}
    return made


def _wide(graph: fx.Graph, argument: Any) -> Any:
    value = _value(argument)
    is_half = isinstance(argument, fx.Node) and isinstance(value, torch.Tensor) and value.dtype in HALVES
    return as_dtype(graph, argument, torch.float32) if is_half else argument


def _widen(graph: fx.Graph, node: fx.Node) -> None:
    half = _value(node.args[0]).dtype
    with graph.inserting_before(node):
        node.args = tuple(_wide(graph, argument) for argument in node.args)
    results = [node]
    if isinstance(node.meta["val"], (tuple, list)):
        results = [user for user in node.users if user.target is operator.getitem and user.args[1] == 0]
    for result in results:
        value = result.meta["val"]
        with value.fake_mode:
            result.meta["val"] = torch.empty_strided(value.shape, value.stride(), dtype=torch.float32)
        with graph.inserting_after(result):
            back = as_dtype(graph, result, half)
        result.replace_all_uses_with(back, delete_user_cb=functools.partial(operator.is_not, back))
