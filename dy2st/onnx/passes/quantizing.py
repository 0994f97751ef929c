"""Quantisation to fewer values than the integer type holds, which torch's exporter writes without its bounds.

ONNX's ``QuantizeLinear`` saturates at the bounds of the type alone: 4-bit values in ``uint8`` would reach 255.

Source: ``quantize_per_tensor`` of ``torch.ao.quantization.fx._decomposed``, torch 2.13; ONNX operator QuantizeLinear.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch import fx

# The operators are there only where a program has imported them: they are known by name.
_FAMILY = "quantized_decomposed.quantize_per_tensor."


def keep_bounds(module: fx.GraphModule) -> None:
    """Clamp what is quantised to less than its type holds, in a module and its subgraphs."""
    for graph in [inner.graph for inner in module.modules() if isinstance(inner, fx.GraphModule)]:
        for node in list(graph.nodes):
            if node.op == "call_function" and str(node.target).startswith(_FAMILY):
                _clamp(graph, node)
    module.recompile()


def _clamp(graph: fx.Graph, node: fx.Node) -> None:
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    given: dict[str, Any] = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
    low, high, limits = given["quant_min"], given["quant_max"], torch.iinfo(given["dtype"])
    if (low, high) == (limits.min, limits.max):
        return
    with graph.inserting_after(node):
        clamped = graph.call_function(torch.ops.aten.clamp.default, (node, low, high))
    clamped.meta = dict(node.meta)
    node.replace_all_uses_with(clamped, delete_user_cb=functools.partial(operator.is_not, clamped))
