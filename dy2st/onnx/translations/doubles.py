"""Data-dependent Python floats: float32 beside tensors, and doubles for all that Python computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, DOUBLE_OF, FLOAT, cast, constant, is_symbolic_input, op


def double_of(x: Any) -> ir.Value:
    """A number in double precision, as Python has it."""
    return cast(x, DOUBLE) if isinstance(x, ir.Value) else constant(float(x), DOUBLE)


def with_double(x: ir.Value) -> ir.Value:
    """A double as the float32 that stands for a Python float."""
    made = op("Cast", x, to=int(FLOAT), dtype=FLOAT)
    made.meta[DOUBLE_OF] = x
    return made


def doubles_for(function: ir.Function, operands: Sequence[Any]) -> list[Any]:
    """The operands of a call, of which floats are doubles, as the subgraph takes them from now on."""
    for i, given in enumerate(list(function.inputs)):
        if is_symbolic_input(given):
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
