"""``yield``: a generator tells the run time where it hands control to its consumer, and where it gets it back."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.returns import statements_after_head
from dy2st.transforms.tree import Pass, on

if TYPE_CHECKING:
    from dy2st.transforms.analysis import Facts


class LowerYield(Pass):
    """A generator's yields go through an operator.

    Before:
        def f(xs):
            for x in xs:
                y = yield x
            yield from xs

    After:
        def f(xs):
            gen_1 = d2s.generator()
            for x in xs:
                y = gen_1.resumed((yield gen_1.yields(x)))
            gen_1.resumed((yield from gen_1.yields(xs)))

    Order: before returns, whose frame is all that a function does.
    Refuses: asynchronous generators and lambdas are left alone.
    Source: Python reference, 6.2.9 Yield expressions.
    """

    constructs = (ast.Yield, ast.YieldFrom)

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Whether any function yields."""
        return bool(facts.yield_of)

    @on(cst.Yield)
    def yield_(self, node: cst.Yield) -> cst.BaseExpression:
        """``yield value``, ``yield from iterable``."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        function = self.facts.yield_of.get(origin) if origin is not None else None
        if function is None:
            return node
        name = self.unit.names.of(function, "gen")
        value = node.value.item if isinstance(node.value, cst.From) else node.value
        given = [] if value is None else [self.unit.fit(build.argument, value)]
        told = self.unit.at(build.method(name, "yields", *given), origin)
        result = cst.From(told) if isinstance(node.value, cst.From) else told
        spaced = node.with_changes(value=result, whitespace_after_yield=cst.SimpleWhitespace(" "), lpar=[], rpar=[])
        return self.unit.at(build.method(name, "resumed", self.unit.same(node, spaced)), origin)

    @on(cst.FunctionDef)
    def function_def(self, node: cst.FunctionDef) -> cst.FunctionDef:
        """The driver of a generator."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if origin not in self.facts.yield_of.values() or not isinstance(origin, ast.FunctionDef):
            return node
        body = build.body_of(node.body)
        first = statements_after_head(body)
        start = build.line(build.assign(self.unit.names.of(origin, "gen"), self.operator("generator")))
        place = origin.body[min(first, len(origin.body) - 1)]
        return node.with_changes(body=build.like(node.body, [*body[:first], self.unit.at(start, place), *body[first:]]))
