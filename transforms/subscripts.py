"""Loads of items: ``x[i]``."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.tree import Pass, Unit, on


class LowerSubscript(Pass):
    """An object that is indexed goes through an operator.

    Before:
        def f(x, i):
            return x[i] + x["key"]

    After:
        def f(x, i):
            return d2s.item(x)[i] + x["key"]

    Order: any.
    Refuses: a literal string as the key, which no tensor takes; unless the function stores to that dict, which may not
        have the key yet.
    Source: Python reference, 6.3.2 Subscriptions.
    """

    constructs = (ast.Subscript,)

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit)
        subscripts = [n for n in ast.walk(self.facts.root) if isinstance(n, ast.Subscript)]
        self._stored = {ast.unparse(n.value) for n in subscripts if isinstance(n.ctx, ast.Store)}

    @on(cst.Subscript)
    def subscript(self, node: cst.Subscript) -> cst.Subscript:
        """Rewrite one load."""
        node = self.inside(node)
        origin = self.active(node, ast.Subscript)
        if origin is None or not isinstance(origin.ctx, ast.Load):
            return node
        literal = isinstance(origin.slice, ast.Constant) and isinstance(origin.slice.value, str)
        if literal and ast.unparse(origin.value) not in self._stored:
            return node
        return node.with_changes(value=self.wrapped("item", node.value))
