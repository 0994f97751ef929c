"""``and``, ``or``, ``not``: lazy where Python is lazy, and tested as often."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.analysis.python_tests import python_only
from dy2st.transforms.pairing import operands
from dy2st.transforms.tree import Pass, on
from dy2st.transforms.walruses import announced, names_bound, rebound


class LowerLogic(Pass):
    """The second operand of ``and``/``or`` is evaluated when the run time wants it.

    Where only the truth of the expression counts (a test), the ``_test`` form spares the first operand a second test.

    Before:
        def f(a, b):
            return a and b

    After:
        def f(a, b):
            return d2s.and_(and_2 := d2s.lazy_and(a), b if and_2.more() else None)

    A name that ``:=`` binds in the second operand is bound again to what it is then, if the operand was staged:
    ``(d2s.and_(and_2 := d2s.lazy_and(a, "x"), ...), and_2.staged and [x := and_2.bound("x")])[0]``.

    Order: any.
    Refuses: nothing; where ``:=`` may not stand, and where only Python can decide, it stays as it is.
    Source: Python reference, 6.11 Boolean operations.
    """

    constructs = (ast.BoolOp,)

    @on(cst.BooleanOperation)
    def boolean_operation(self, node: cst.BooleanOperation) -> cst.BaseExpression:
        """Rewrite one chain of the same operator."""
        node = self.inside(node)
        origin = self.active(node, ast.BoolOp)
        if origin is None or origin in self.facts.no_walrus or python_only(origin, self.facts.shadowed):
            return node
        word = "and" if isinstance(origin.op, ast.And) else "or"
        test = origin in self.facts.conditions
        return lazy(self, word, operands(node), origin.lineno, test=test, origins=origin.values)


def lazy(
    lowering: Pass,
    word: str,
    values: list[cst.BaseExpression],
    line: int,
    *,
    test: bool,
    origins: Sequence[ast.expr] = (),
) -> cst.BaseExpression:
    """``values`` joined by ``and`` or ``or``, the last one innermost; ``origins``: what they are in the user's code."""
    if len(values) == 1:
        return values[0]
    name = lowering.unit.names.fresh(word, line)
    bound = names_bound(lowering, *origins[1:])
    started = lowering.operator(
        f"lazy_{word}", lowering.unit.fit(build.argument, values[0]), *(build.string(each) for each in bound)
    )
    first = build.walrus(name, lowering.unit.at(started, lowering.unit.place(values[0])))
    rest = lazy(lowering, word, values[1:], line, test=test, origins=origins[1:])
    for origin in origins[1:2]:
        rest = announced(lowering, rest, origin)
    second = build.ternary(build.method(name, "more"), lowering.unit.fit(build.arm, rest))
    result = lowering.operator(f"{word}_test" if test else f"{word}_", first, second)
    return rebound(result, name, bound)


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
        origin = self.active(node, ast.UnaryOp)
        if origin is None or not isinstance(origin.op, ast.Not) or python_only(origin, self.facts.shadowed):
            return node
        return self.operator("not_", self.unit.fit(build.argument, node.expression))
