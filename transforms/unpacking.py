"""Unpacking: assignments to several targets, ``a, *rest = xs``, and displays that take all elements, ``[a, *xs]``."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.tree import Pass, on


class GuardUnpacking(Pass):
    """What is unpacked goes through an operator that is told the targets: Python counts the values.

    Before:
        def f(xs):
            a, *rest = xs
            (b, c), d = xs
            return [0, *xs]

    After:
        def f(xs):
            a, *rest = d2s.unpacked(xs, 1, 0)
            (b, c), d = d2s.unpacked(xs, 2, None, {0: (2,)})
            return [0, *d2s.spread(xs)]

    Sizes are left as they are, ``n, m = x.shape``: they are a tuple.

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
        unpacks = [target for target in origin.targets if isinstance(target, (ast.Tuple, ast.List))]
        if not unpacks or _is_counted(origin.value, *unpacks):
            return node
        value = self.wrapped("unpacked", node.value)
        if len(origin.targets) > 1:
            return node.with_changes(value=value)
        told = [cst.Arg(cst.parse_expression(part)) for part in _targets(unpacks[0])]
        return node.with_changes(
            value=self.unit.at(value.with_changes(args=[*value.args, *told]), self.unit.place(node.value))
        )


def _is_counted(value: ast.expr, *targets: ast.Tuple | ast.List) -> bool:
    """Whether Python knows how many values there are, and no more is asked of one of them."""
    if isinstance(value, ast.Attribute):
        return value.attr == "shape"
    if not isinstance(value, (ast.Tuple, ast.List)) or any(isinstance(each, ast.Starred) for each in value.elts):
        return False
    return not any(isinstance(each, (ast.Tuple, ast.List)) for target in targets for each in target.elts)


def _targets(target: ast.Tuple | ast.List) -> list[str]:
    """How many targets there are before one with a star, and behind it, and what those in brackets are."""
    star = next((place for place, each in enumerate(target.elts) if isinstance(each, ast.Starred)), None)
    inner = {
        place if star is None or place < star else place - len(target.elts): _targets(each)
        for place, each in enumerate(target.elts)
        if isinstance(each, (ast.Tuple, ast.List))
    }
    told = [str(len(target.elts) if star is None else star)]
    if star is not None or inner:
        told.append("None" if star is None else str(len(target.elts) - star - 1))
    if inner:
        told.append("{" + ", ".join(f"{place}: ({', '.join(parts)},)" for place, parts in inner.items()) + "}")
    return told
