"""Assignments that unpack into a list: ``a, *rest = xs``."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.tree import Pass, on


class GuardUnpacking(Pass):
    """What is unpacked with a starred target goes through an operator: Python counts its elements.

    Before:
        def f(xs):
            a, *rest = xs

    After:
        def f(xs):
            a, *rest = d2s.unpacked(xs)

    Order: before MarkDisplay, like all that puts calls around values.
    Refuses: nothing.
    Source: Python reference, 7.2 Assignment statements.
    """

    constructs = (ast.Assign,)

    @on(cst.Assign)
    def assign(self, node: cst.Assign) -> cst.Assign:
        """Rewrite one assignment."""
        node = self.inside(node)
        origin = self.active(node, ast.Assign)
        if origin is None:
            return node
        starred = any(isinstance(part, ast.Starred) for target in origin.targets for part in ast.walk(target))
        if not starred or isinstance(origin.value, (ast.Tuple, ast.List)):
            return node
        return node.with_changes(value=self.wrapped("unpacked", node.value))
