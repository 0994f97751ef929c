"""Data-dependent Python floats: float32 beside tensors, and doubles for all that Python computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import DOUBLE, FLOAT, cast, constant, op

# Where a value keeps the double that it was rounded from; torch's exporter calls all symbolic floats float32.
_DOUBLE = "dy2st.double"


def double_of(x: Any) -> ir.Value:
    """A number in double precision, as Python has it."""
    if not isinstance(x, ir.Value):
        return constant(float(x), DOUBLE)
    if _DOUBLE not in x.meta and _is_symbolic_input(x):
        x.meta[_DOUBLE] = ir.Value(name=f"{x.name}_double", type=ir.TensorType(DOUBLE), shape=ir.Shape([]))
    kept = x.meta.get(_DOUBLE)
    return kept if isinstance(kept, ir.Value) else cast(x, DOUBLE)


def with_double(x: ir.Value) -> ir.Value:
    """A double as the float32 that stands for a Python float."""
    made = op("Cast", x, to=int(FLOAT), dtype=FLOAT)
    made.meta[_DOUBLE] = x
    return made


def doubles_for(function: ir.Function, operands: Sequence[Any]) -> list[Any]:
    """The operands of a call, of which floats are doubles, as the subgraph takes them from now on."""
    for i, given in enumerate(list(function.inputs)):
        if _is_symbolic_input(given):
            double = double_of(given)
            function.inputs[i] = double
            rounded = ir.Node("", "Cast", [double], [ir.AttrInt64("to", int(FLOAT))], outputs=[given])
            first = next(iter(function), None)
            if first is None:
                function.append(rounded)
            else:
                function.insert_before(first, rounded)
    inputs = list(function.inputs)[len(function.inputs) - len(operands) :]
    return [
        double_of(operand)
        if inner.dtype == DOUBLE and isinstance(operand, ir.Value) and operand.dtype == FLOAT
        else operand
        for inner, operand in zip(inputs, operands, strict=True)
    ]


def _is_symbolic_input(x: ir.Value) -> bool:
    """Whether it is a float that a subgraph takes from around."""
    node = x.meta.get("node")
    return x.producer() is None and isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.SymFloat)
