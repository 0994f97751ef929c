"""Numbers that are stretched to the shape which an elementwise operator would stretch them to anyway.

Before::

    size = Shape(y)
    zeros = Expand(0.0, size)
    sum = Add(zeros, x)

After, if ``x`` has the shape of ``y``::

    sum = Add(0.0, x)

A sum with zero stays one: it makes 0.0 of -0.0.
Source: multidirectional broadcasting, https://onnx.ai/onnx/repo-docs/Broadcasting.html.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import is_onnx, same_shape

ELEMENTWISE = frozenset(
    """Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Pow
    Sub Where Xor""".split()
)


def stretch_in_operators(model: ir.Model) -> None:
    """Give elementwise operators what was stretched for them; in place, subgraphs included."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type in ELEMENTWISE and is_onnx(node):
            for place, value in enumerate(node.inputs):
                small = _stretched(value)
                others = [other for index, other in enumerate(node.inputs) if index != place]
                if small is not None and any(same_shape(value, other) for other in others):
                    node.replace_input_with(place, small)


def _stretched(value: ir.Value | None) -> ir.Value | None:
    """What an ``Expand`` stretches."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "Expand" or not is_onnx(node):
        return None
    return node.inputs[0]
