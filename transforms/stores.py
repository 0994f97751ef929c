"""Stores and deletions in objects, and stores to variables of other scopes: the run time is told of them."""

from __future__ import annotations

import ast
from typing import TypeVar

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, on

Target = TypeVar("Target", cst.Attribute, cst.Subscript)


class LowerStore(Pass):
    """The object whose attribute or item is stored to, or deleted, goes through an operator.

    Before:
        def f(self, d, v):
            self.x = v
            d[0], y = v
            d[1] += 1
            del self.x

    After:
        def f(self, d, v):
            d2s.target(self).x = v
            d2s.target(d)[0], y = v
            d2s.target(d)[1] += 1
            del d2s.target(self).x

    Order: any.
    Refuses: nothing.
    Source: Python reference, 7.2 Assignment statements, 7.5 The del statement.
    """

    constructs = (ast.Store, ast.Del, ast.Attribute, ast.Subscript)

    @on(cst.Attribute, cst.Subscript)
    def target(self, node: Target) -> Target:
        """``obj.attr`` or ``obj[k]`` as a target."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.Attribute | ast.Subscript) or isinstance(origin.ctx, ast.Load):
            return node
        if origin not in self.facts.active:
            return node
        return node.with_changes(value=self.wrapped("target", node.value))


class TouchOuter(Pass):
    """A statement that stores to a ``global`` or ``nonlocal`` name is announced, and a generator expression's ``:=``.

    Before:
        def f(x):
            global n
            n = x
            return any((n := y) for y in x)

    After:
        def f(x):
            global n
            d2s.touch_global("n", globals()); n = x
            d2s.touch_global("n", globals()); return any((d2s.touch_global("n", globals()), (n := y))[1] for y in x)

    Order: before branches and loops, so that the announcement stands in the same suite as the statement.
    Refuses: nothing.
    Source: Python reference, 7.12 The global statement, 7.13 The nonlocal statement; PEP 572.
    """

    constructs = (ast.Global, ast.Nonlocal, ast.NamedExpr)

    def visit(self, node: cst.CSTNode) -> object:
        """Put the announcements before a statement."""
        result = super().visit(node)
        origin = self.unit.origin(node)
        if isinstance(result, cst.NamedExpr) and isinstance(origin, ast.NamedExpr):
            return self._told(result, origin)
        touched = self.facts.touched.get(origin, ()) if origin is not None else ()
        if not touched or not isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return result
        if isinstance(node, cst.If) and not isinstance(result, cst.If):
            return result
        notes = [
            self.unit.at(cst.Expr(announcement(self, name, is_global=is_global)), origin) for name, is_global in touched
        ]
        if isinstance(node, cst.BaseSmallStatement):
            return [*notes, result]
        return [*(self.unit.at(build.line(note), origin) for note in notes), result]

    def _told(self, node: cst.NamedExpr, origin: ast.NamedExpr) -> cst.BaseExpression:
        """An assignment expression, with an announcement before it where no statement's is in time."""
        is_global = self.facts.shared_walruses.get(origin)
        if is_global is None or origin not in self.facts.later_walruses:
            return node
        return build.pair(announcement(self, origin.target.id, is_global=is_global), node, 1)


def announcement(lowering: Pass, name: str, *, is_global: bool) -> cst.Call:
    """What says that a name which other functions may store to as well is stored to."""
    if is_global:
        return lowering.operator("touch_global", build.string(name), build.call(cst.Name("globals")))
    return lowering.operator("touch_nonlocal", cst.Lambda(cst.Parameters(), cst.Name(name)))
