"""``a if test else b``."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.analysis.python_tests import python_only
from dy2st.transforms.tree import Pass, on
from dy2st.transforms.walruses import announced, names_bound, rebound


class LowerTernary(Pass):
    """A conditional expression becomes two, each of which runs when the run time says so.

    Before:
        def f(x):
            return x if x.sum() > 0 else -x

    After:
        def f(x):
            return d2s.ifexp(if_2 := d2s.if_(x.sum() > 0), x if if_2.then() else None, -x if if_2.orelse() else None)

    Names that ``:=`` binds in an arm are what they were before in the other one, and are joined behind both.

    Order: any.
    Refuses: nothing; where ``:=`` may not stand (iterables of comprehensions) and where only Python can decide the test
        it stays as it is. In a generator expression, an arm that resumes the same expression may see the other's test.
    Source: Python reference, 6.13 Conditional expressions.
    """

    constructs = (ast.IfExp,)

    @on(cst.IfExp)
    def if_exp(self, node: cst.IfExp) -> cst.BaseExpression:
        """Rewrite one conditional expression."""
        node = self.inside(node)
        origin = self.active(node, ast.IfExp)
        if origin is None or origin in self.facts.no_walrus or python_only(origin.test, self.facts.shadowed):
            return node
        name = self.unit.names.fresh("if", origin.lineno)
        first, bound = names_bound(self, origin.body), names_bound(self, origin.body, origin.orelse)
        started = self.operator(
            "if_", self.unit.fit(build.argument, node.test), *(build.string(each) for each in bound)
        )
        test = build.walrus(name, self.unit.at(started, self.unit.place(node.test)))
        body = announced(self, self.unit.fit(build.arm, node.body), origin.body)
        then = build.ternary(build.method(name, "then"), body)
        other = announced(self, self.unit.fit(build.arm, node.orelse), origin.orelse)
        if first:
            other = build.pair(build.rebound(name, "before", first), other, 1)
        orelse = build.ternary(build.method(name, "orelse"), other)
        result = self.operator("ifexp", test, then, orelse)
        return rebound(result, name, bound)
