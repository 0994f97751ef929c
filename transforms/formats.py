"""``"..." % values``: text made of what may be staged."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, on


class LowerFormat(Pass):
    """A literal that is formatted with ``%`` is formatted by an operator, which knows what has no text yet.

    Before:
        def f(n):
            return "step %d" % n

    After:
        def f(n):
            return d2s.formatted("step %d", n)

    Order: any.
    Refuses: nothing; ``%`` on anything but a literal stays, and may be a remainder.
    Source: Python library reference, printf-style String Formatting.
    """

    constructs = (ast.BinOp,)

    @on(cst.BinaryOperation)
    def binary_operation(self, node: cst.BinaryOperation) -> cst.BaseExpression:
        """Rewrite one ``%``."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.BinOp) or origin not in self.facts.active:
            return node
        text = isinstance(origin.left, ast.JoinedStr) or (
            isinstance(origin.left, ast.Constant) and isinstance(origin.left.value, str)
        )
        if not text or not isinstance(origin.op, ast.Mod) or isinstance(origin.right, ast.Constant):
            return node
        sides = (self.unit.fit(build.argument, side) for side in (node.left, node.right))
        return self.operator("formatted", *sides)
