"""Augmented assignments that may change an object in place."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.tree import Pass, on

# What lists, sets, dicts and deques update themselves by.
IN_PLACE = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


class AnnounceUpdate(Pass):
    """An augmented assignment to a name is announced, if the name may hold a container.

    Before:
        def f(rows, n, x):
            rows += [x]
            n += 1

    After:
        def f(rows, n, x):
            d2s.touch(rows); rows += [x]
            n += 1

    Order: before branches and loops, so that the announcement stands in the same suite as the statement.
    Refuses: nothing; an assignment whose right side is a number's stays as it is.
    Source: Python reference, 7.2.1 Augmented assignment statements.
    """

    constructs = (ast.AugAssign,)

    @on(cst.AugAssign)
    def aug_assign(self, node: cst.AugAssign) -> cst.AugAssign | list[cst.BaseSmallStatement]:
        """Announce one."""
        node = self.inside(node)
        origin = self.active(node, ast.AugAssign)
        if origin is None or not isinstance(origin.target, ast.Name):
            return node
        if not isinstance(origin.op, IN_PLACE) or numeric(origin.value):
            return node
        name = self.unit.at(cst.Name(origin.target.id), origin.target)
        note = cst.Expr(self.operator("touch", name))
        return [self.unit.at(note, origin), node]


def numeric(value: ast.expr) -> bool:
    """Whether an expression can't be a container: a literal, a comparison, or arithmetic that containers don't have."""
    if isinstance(value, ast.BinOp):
        return not isinstance(value.op, IN_PLACE) or numeric(value.left) or numeric(value.right)
    return isinstance(value, (ast.Constant, ast.Compare, ast.UnaryOp, ast.JoinedStr))
