"""``"..." % values`` and f-strings: text made of what may be staged."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Node, Pass, Unit, on


class LowerFormat(Pass):
    """A literal that is formatted with ``%`` is formatted by an operator, which knows what has no text yet.

    So is an f-string, unless it is but shown: by ``print``, or in an error.

    Before:
        def f(n):
            if n < 0:
                raise ValueError(f"{n} is negative")
            return "step %d" % n, f"step {n}"

    After:
        def f(n):
            if n < 0:
                raise ValueError(f"{n} is negative")
            return d2s.formatted("step %d", n), d2s.text(f"step {n}")

    Order: any.
    Refuses: nothing; ``%`` on anything but a literal stays, and may be a remainder.
    Source: Python library reference, printf-style String Formatting; Python reference, 2.4.3 f-strings.
    """

    constructs = (ast.BinOp, ast.JoinedStr)

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit)
        self.shown = False

    def _inside(self, node: Node, *, shown: bool) -> Node:
        """``node`` with its children rewritten, which may be but shown."""
        before = self.shown
        self.shown = before or shown
        try:
            return self.inside(node)
        finally:
            self.shown = before

    @on(cst.Raise)
    def raise_(self, node: cst.Raise) -> cst.Raise:
        """Nothing depends on the text of an error."""
        return self._inside(node, shown=True)

    @on(cst.Call)
    def call(self, node: cst.Call) -> cst.Call:
        """Nor on what is printed."""
        prints = isinstance(node.func, cst.Name) and node.func.value == "print"
        plain = all(isinstance(arg.value, (cst.BaseString, cst.Name)) for arg in node.args)
        return self._inside(node, shown=prints and plain)

    @on(cst.FormattedString)
    def formatted_string(self, node: cst.FormattedString) -> cst.BaseExpression:
        """Rewrite one f-string."""
        origin = self.active(node, ast.JoinedStr)
        node = self.inside(node)
        fields = any(isinstance(part, cst.FormattedStringExpression) for part in node.parts)
        return node if self.shown or origin is None or not fields else self.wrapped("text", node)

    @on(cst.ConcatenatedString)
    def concatenated_string(self, node: cst.ConcatenatedString) -> cst.BaseExpression:
        """Rewrite literals side by side, one of which at least is an f-string."""
        origin = self.active(node, ast.JoinedStr)
        node = self._inside(node, shown=True)
        return node if self.shown or origin is None else self.wrapped("text", node)

    @on(cst.BinaryOperation)
    def binary_operation(self, node: cst.BinaryOperation) -> cst.BaseExpression:
        """Rewrite one ``%``."""
        node = self.inside(node)
        origin = self.active(node, ast.BinOp)
        if origin is None:
            return node
        text = isinstance(origin.left, ast.JoinedStr) or (
            isinstance(origin.left, ast.Constant) and isinstance(origin.left.value, str)
        )
        if not text or not isinstance(origin.op, ast.Mod) or isinstance(origin.right, ast.Constant):
            return node
        sides = (self.unit.fit(build.argument, side) for side in (node.left, node.right))
        return self.operator("formatted", *sides)
