"""``shape[:1] + (n,)``: sizes that are put together with ``+``."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.comparisons import is_shape
from dy2st.transforms.tree import Pass, on


class LowerConcatenation(Pass):
    """``+`` of what reads like sizes, a tuple display among them, becomes a call: a shape takes sizes only.

    Before:
        def f(x, n):
            shape = x.shape[:1] + (n,) + x.shape[2:]
            return shape, x + n

    After:
        def f(x, n):
            shape = d2s.concatenated(d2s.concatenated(x.shape[:1], (n,)), x.shape[2:])
            return shape, x + n

    Order: any.
    Refuses: nothing; ``+`` of other things stays as it is.
    Source: Python reference, 6.7 Binary arithmetic operations; torch.Size.
    """

    constructs = (ast.BinOp,)

    @on(cst.BinaryOperation)
    def binary_operation(self, node: cst.BinaryOperation) -> cst.BaseExpression:
        """Rewrite one ``+``."""
        node = self.inside(node)
        origin = self.active(node, ast.BinOp)
        if origin is None or not _joins_sizes(origin):
            return node
        return self.operator("concatenated", *(self.unit.fit(build.argument, side) for side in (node.left, node.right)))


def _joins_sizes(side: ast.expr) -> bool:
    """Whether an expression is a sum of sizes."""
    if not isinstance(side, ast.BinOp) or not isinstance(side.op, ast.Add):
        return False
    return any(reads_like_a_shape(each) or _joins_sizes(each) for each in (side.left, side.right))


def reads_like_a_shape(side: ast.expr) -> bool:
    """A shape, a slice of one, or a tuple display."""
    if isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Slice):
        side = side.value
    return isinstance(side, ast.Tuple) or is_shape(side)
