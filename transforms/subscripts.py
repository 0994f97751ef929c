"""Loads of items: ``x[i]``."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.tree import Pass, on


class LowerSubscript(Pass):
    """An object that is indexed goes through an operator.

    Before:
        def f(x, i):
            return x[i] + x["key"]

    After:
        def f(x, i):
            return d2s.item(x)[i] + x["key"]

    Order: any.
    Refuses: a literal string as the key, which no tensor takes.
    Source: Python reference, 6.3.2 Subscriptions.
    """

    constructs = (ast.Subscript,)

    @on(cst.Subscript)
    def subscript(self, node: cst.Subscript) -> cst.Subscript:
        """Rewrite one load."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.Subscript) or not isinstance(origin.ctx, ast.Load):
            return node
        literal = isinstance(origin.slice, ast.Constant) and isinstance(origin.slice.value, str)
        if literal or origin not in self.facts.active:
            return node
        return node.with_changes(value=self.wrapped("item", node.value))
