"""``yield``: a generator tells the run time where it hands control to its consumer, and where it gets it back."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.returns import parted
from dy2st.transforms.tree import Pass, on

if TYPE_CHECKING:
    from dy2st.transforms.analysis import Facts


class LowerYield(Pass):
    """A generator's yields go through an operator.

    Before:
        def f(xs):
            for x in xs:
                y = yield x
            try:
                yield from xs
            finally:
                g()

    After:
        def f(xs):
            gen_1 = d2s.generator()
            for x in xs:
                y = gen_1.resumed((yield gen_1.yields(x)))
            try:
                gen_1.resumed((yield from gen_1.delegates(xs, True)))
            finally:
                g()

    A yield that something has to be done after, even if the generator is never resumed, says so.

    Order: before returns, whose frame is all that a function does.
    Refuses: asynchronous generators and lambdas are left alone.
    Source: Python reference, 6.2.9 Yield expressions.
    """

    constructs = (ast.Yield, ast.YieldFrom)

    def run(self) -> None:
        """Rewrite the unit."""
        # The yields of each function that something is done after in any case.
        self.ended: dict[ast.AST, set[ast.AST]] = {}
        super().run()

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
        if origin in self._cleaned_up(function):
            given = [*(given or [cst.Name("None")]), cst.Name("True")]
        delegates = isinstance(node.value, cst.From)
        told = self.unit.at(build.method(name, "delegates" if delegates else "yields", *given), origin)
        result = cst.From(told) if delegates else told
        spaced = node.with_changes(value=result, whitespace_after_yield=cst.SimpleWhitespace(" "), lpar=[], rpar=[])
        return self.unit.at(build.method(name, "resumed", self.unit.same(node, spaced)), origin)

    def _cleaned_up(self, function: ast.AST) -> set[ast.AST]:
        if function not in self.ended:
            self.ended[function] = cleaned_up(function)
        return self.ended[function]

    @on(cst.FunctionDef)
    def function_def(self, node: cst.FunctionDef) -> cst.FunctionDef:
        """The driver of a generator."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if origin not in self.facts.yield_of.values() or not isinstance(origin, ast.FunctionDef):
            return node
        head, rest, place = parted(node, origin)
        start = build.line(build.assign(self.unit.names.of(origin, "gen"), self.operator("generator")))
        return node.with_changes(body=build.like(node.body, [*head, self.unit.at(start, place), *rest]))


# What a generator that is deleted is ended by.
_CLOSING = frozenset({"GeneratorExit", "BaseException"})


def cleaned_up(function: ast.AST) -> set[ast.AST]:
    """The yields of a function that something is done after even if it is never resumed: ``with``, ``finally``."""
    found: set[ast.AST] = set()
    stack = [(child, False) for child in ast.iter_child_nodes(function)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Yield | ast.YieldFrom) and inside:
            found.add(node)
        ends = isinstance(node, ast.Try | ast.TryStar) and (node.finalbody or any(map(_closes, node.handlers)))
        last = node.finalbody if isinstance(node, ast.Try | ast.TryStar) else []
        for child in ast.iter_child_nodes(node):
            if child in last:
                stack.append((child, inside))
            else:
                stack.append((child, inside or bool(ends) or isinstance(node, ast.With)))
    return found


def _closes(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _CLOSING) for kind in kinds)
