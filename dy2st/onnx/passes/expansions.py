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

ELEMENTWISE = frozenset(
    """Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Pow
    Sub Where Xor""".split()
)


def stretch_in_operators(model: ir.Model) -> None:
    """Give elementwise operators what was stretched for them; in place, subgraphs included."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type in ELEMENTWISE and node.domain in {"", "ai.onnx"}:
            for place, value in enumerate(node.inputs):
                small = _stretched(value)
                others = [other for index, other in enumerate(node.inputs) if index != place]
                if small is not None and any(same_shape(value, other) for other in others):
                    node.replace_input_with(place, small)


def _stretched(value: ir.Value | None) -> ir.Value | None:
    """What an ``Expand`` stretches."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "Expand" or node.domain not in {"", "ai.onnx"}:
        return None
    return node.inputs[0]


def same_shape(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Whether two values are known to have the same shape; sizes of one name are one size."""
    if one is None or other is None or one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return False
    return all(same_size(a, b) for a, b in zip(one.shape, other.shape, strict=True))


def same_rank(*values: ir.Value) -> bool:
    """Whether values are known to have the same number of dimensions."""
    ranks = {None if value.shape is None else len(value.shape) for value in values}
    return len(ranks) == 1 and None not in ranks


def same_size(one: int | ir.SymbolicDim, other: int | ir.SymbolicDim) -> bool:
    """Whether two sizes are known to be the same."""
    return one == other and (isinstance(one, int) or one.value is not None)
