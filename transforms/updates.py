"""Augmented assignments that may change an object in place."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, on

# What lists, sets, dicts and deques update themselves by.
IN_PLACE = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


class AnnounceUpdate(Pass):
    """An augmented assignment to a name is announced, if the name may hold a container.

    Before:
        def f(rows, seen, n, x):
            rows += [x]
            seen |= x
            n += 1

    After:
        def f(rows, seen, n, x):
            rows += d2s.added(rows, [x])
            d2s.touch(seen); seen |= x
            n += 1

    What is added to a list goes through the operator, since it may be a tensor whose rows only the graph can count.

    Order: before branches and loops, so that the announcement stands in the same suite as the statement.
    Refuses: nothing; what adds a literal number stays as it is, since no container takes one.
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
        if not isinstance(origin.op, IN_PLACE) or (is_number(origin.value) and not isinstance(origin.op, ast.Mult)):
            return node
        name = self.unit.at(cst.Name(origin.target.id), origin.target)
        if isinstance(origin.op, ast.Add):
            value = self.operator("added", name, self.unit.fit(build.argument, node.value))
            return node.with_changes(value=self.unit.at(value, origin.value))
        note = cst.Expr(self.operator("touch", name))
        return [self.unit.at(note, origin), node]


def is_number(value: ast.expr) -> bool:
    """Whether an expression is made of number literals alone."""
    if isinstance(value, ast.BinOp):
        return is_number(value.left) and is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    return isinstance(value, ast.Constant) and isinstance(value.value, (int, float, complex))
