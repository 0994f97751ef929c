"""Stars: assignments that unpack into a list, ``a, *rest = xs``, and displays that take all elements, ``[a, *xs]``."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.tree import Pass, on


class GuardUnpacking(Pass):
    """What is unpacked with a star goes through an operator: Python counts its elements.

    Before:
        def f(xs):
            a, *rest = xs
            return [0, *xs]

    After:
        def f(xs):
            a, *rest = d2s.unpacked(xs)
            return [0, *d2s.spread(xs)]

    Order: before MarkDisplay, like all that puts calls around values.
    Refuses: nothing.
    Source: Python reference, 7.2 Assignment statements, 6.2.4 Displays for lists, sets and dictionaries.
    """

    constructs = (ast.Assign, ast.Starred)

    @on(cst.StarredElement)
    def element(self, node: cst.StarredElement) -> cst.StarredElement:
        """Rewrite one element of a display."""
        node = self.inside(node)
        origin = self.active(node, ast.Starred)
        if origin is None or not isinstance(origin.ctx, ast.Load):
            return node
        return node.with_changes(value=self.wrapped("spread", node.value))

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
