"""Arguments written out before lowering, where torch's exporter takes them for something else.

It gives a tensor that is made of numbers float32 if no dtype is named, whatever ``torch.set_default_dtype`` says, and
promotes one bound of ``x.clamp(0.5, 3)``, but not the other, to a tensor, which no overload takes. Of integers that are
taken from a float it asks for a difference that there is none of.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from dy2st.onnx.passes.mixed_norms import as_dtype

aten = torch.ops.aten
CLAMPS = (aten.clamp.default, aten.clamp_.default, aten.clip.default, aten.clip_.default)


def write_out_arguments(graph: fx.Graph, node: fx.Node) -> None:
    """Name the dtype of a new tensor; make the bounds of a clamp alike, and the operands of a difference."""
    if node.target in CLAMPS:
        _make_bounds_alike(graph, node)
    elif node.target is aten.floor_divide.default and not isinstance(node.args[0], fx.Node):
        _make_tensor_of_number(graph, node)
    elif node.target in (aten.rsub.Scalar, aten.angle.default):
        _make_operand_alike(graph, node)
    elif isinstance(node.target, torch._ops.OpOverload) and _takes_only_numbers(node.target):
        _name_dtype(node)


def _takes_only_numbers(target: torch._ops.OpOverload) -> bool:
    """Whether an operator makes a tensor of no other, in a dtype that may be left out."""
    arguments = target._schema.arguments
    return any(a.name == "dtype" for a in arguments) and not any("Tensor" in str(a.type) for a in arguments)


def _name_dtype(node: fx.Node) -> None:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and value.is_floating_point() and node.kwargs.get("dtype") is None:
        node.kwargs = {**node.kwargs, "dtype": value.dtype}


def _make_bounds_alike(graph: fx.Graph, node: fx.Node) -> None:
    given = {**dict(zip(("self", "min", "max"), node.args, strict=False)), **node.kwargs}
    bounds = [given.get("min"), given.get("max")]
    kinds = {_kind(bound) for bound in bounds if bound is not None}
    if float in kinds and len(kinds) > 1:
        node.args, node.kwargs = (given["self"], *(_as_float(graph, node, bound) for bound in bounds)), {}


def _make_tensor_of_number(graph: fx.Graph, node: fx.Node) -> None:
    """Divide a tensor that has the number, where a number is divided."""
    value: Any = node.meta["val"]
    with graph.inserting_before(node):
        number = graph.call_function(aten.scalar_tensor.default, (node.args[0],), {"dtype": value.dtype})
    with value.fake_mode:
        number.meta = {**node.meta, "val": torch.empty((), dtype=value.dtype)}
    node.args = (number, *node.args[1:])


def _make_operand_alike(graph: fx.Graph, node: fx.Node) -> None:
    """Cast integers of which floats are made."""
    operand, dtype = node.args[0], node.meta["val"].dtype
    if isinstance(operand, fx.Node) and not operand.meta["val"].is_complex() and operand.meta["val"].dtype is not dtype:
        with graph.inserting_before(node):
            node.args = (as_dtype(graph, operand, dtype), *node.args[1:])


def _kind(bound: Any) -> type:
    value = bound.meta["val"] if isinstance(bound, fx.Node) else bound
    return float if isinstance(value, (float, torch.SymFloat)) else int


def _as_float(graph: fx.Graph, node: fx.Node, bound: Any) -> Any:
    if not isinstance(bound, fx.Node) or _kind(bound) is float:
        return bound if bound is None or isinstance(bound, fx.Node) else float(bound)
    with graph.inserting_before(node):
        made = graph.call_function(torch.sym_float, (bound,))
    made.meta = {**bound.meta, "val": torch.sym_float(bound.meta["val"])}
    return made
