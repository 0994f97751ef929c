"""What is known of a graph before it runs: operators of ONNX, integer constants, sizes that are the same."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

# Their results have elements of the first operand alone.
PICKING = frozenset(
    """Compress Expand Gather GatherElements GatherND Identity Reshape Slice Split Squeeze Tile Transpose
    Unsqueeze""".split()
)


def is_onnx(node: ir.Node) -> bool:
    """Whether a node is an operator of ONNX's own."""
    return node.domain in {"", "ai.onnx"}


def constant_integers(value: ir.Value | None) -> list[int] | None:
    """The integers of a constant, in a row; None if it is none, or not of integers."""
    found = ir.convenience.get_const_tensor(value) if value is not None else None
    return None if found is None or not found.dtype.is_integer() else [int(each) for each in found.numpy().reshape(-1)]


def is_number(value: ir.Value | None) -> bool:
    """Whether a value is known to have no dimensions."""
    return value is not None and value.shape is not None and not len(value.shape)


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


def fit(values: Sequence[ir.Value | None]) -> bool:
    """Whether values are known to be stretched to one shape."""
    if any(value is None or value.shape is None for value in values):
        return False
    shapes = [list(value.shape) for value in values if value is not None and value.shape is not None]
    dims = max(len(shape) for shape in shapes)
    for d in range(1, dims + 1):
        sizes = [shape[-d] for shape in shapes if len(shape) >= d and shape[-d] != 1]
        if any(not same_size(sizes[0], other) for other in sizes[1:]):
            return False
    return True
