"""``and``, ``or``, ``not``: lazy where Python is lazy, and tested as often."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.analysis.conditions import python_only
from dy2st.transforms.pairing_expressions import operands
from dy2st.transforms.tree import Pass, on


class LowerLogic(Pass):
    """The second operand of ``and``/``or`` is evaluated when the run time wants it.

    Where only the truth of the expression counts (a test), the ``_test`` form spares the first operand a second test.

    Before:
        def f(a, b):
            return a and b

    After:
        def f(a, b):
            return d2s.and_(and_2 := d2s.lazy_and(a), b if and_2.more() else None)

    Order: any.
    Refuses: nothing; where ``:=`` may not stand, and where only Python can decide, it stays as it is.
    Source: Python reference, 6.11 Boolean operations.
    """

    constructs = (ast.BoolOp,)

    @on(cst.BooleanOperation)
    def boolean_operation(self, node: cst.BooleanOperation) -> cst.BaseExpression:
        """Rewrite one chain of the same operator."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.BoolOp) or origin not in self.facts.active or origin in self.facts.no_walrus:
            return node
        if python_only(origin, self.facts.shadowed):
            return node
        word = "and" if isinstance(origin.op, ast.And) else "or"
        return lazy(self, word, operands(node), origin.lineno, test=origin in self.facts.conditions)


def lazy(lowering: Pass, word: str, values: list[cst.BaseExpression], line: int, *, test: bool) -> cst.BaseExpression:
    """``values`` joined by ``and`` or ``or``, the last one innermost."""
    if len(values) == 1:
        return values[0]
    name = lowering.unit.names.fresh(word, line)
    first = build.walrus(name, lowering.wrapped(f"lazy_{word}", values[0]))
    rest = lazy(lowering, word, values[1:], line, test=test)
    second = build.ternary(build.method(name, "more"), lowering.unit.fit(build.arm, rest))
    return lowering.operator(f"{word}_test" if test else f"{word}_", first, second)


class LowerNot(Pass):
    """``not`` of what may be a tensor.

    Before:
        def f(x):
            return not x

    After:
        def f(x):
            return d2s.not_(x)

    Order: any.
    Refuses: nothing.
    Source: Python reference, 6.11 Boolean operations.
    """

    constructs = (ast.Not, ast.UnaryOp)

    @on(cst.UnaryOperation)
    def unary_operation(self, node: cst.UnaryOperation) -> cst.BaseExpression:
        """Rewrite ``not``; the other unary operators are the operand's own."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.UnaryOp) or not isinstance(origin.op, ast.Not):
            return node
        if origin not in self.facts.active or python_only(origin, self.facts.shadowed):
            return node
        return self.operator("not_", self.unit.fit(build.argument, node.expression))
