"""Comprehensions: their iterables, their elements and their conditions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms.tree import Pass, on

if TYPE_CHECKING:
    from dy2st.transforms.analysis import Facts


class LowerComprehension(Pass):
    """Each iterable goes through an operator.

    Before:
        def f(xs):
            return [x for x in xs if x], [y for x in xs for y in x]

    After:
        def f(xs):
            return [x for x in d2s.each(xs) if x], [y for x in d2s.each(xs) for y in d2s.each_inner(x)]

    Order: any; the conditions are ``GuardNativeTest``'s.
    Refuses: nothing.
    Source: Python reference, 6.2.4 Displays for lists, sets and dictionaries.
    """

    constructs = (ast.comprehension,)

    def run(self) -> None:
        """Rewrite the unit."""
        # The clauses that are not the first of their comprehension.
        self.later: set[cst.CSTNode] = set()
        super().run()

    @on(cst.CompFor)
    def comp_for(self, node: cst.CompFor) -> cst.CompFor:
        """Rewrite one ``for`` clause."""
        if node.inner_for_in is not None:
            self.later.add(node.inner_for_in)
        operator = "each_inner" if node in self.later else "each"
        node = self.inside(node)
        if self.unit.origin(node) not in self.facts.active or node.asynchronous is not None:
            return node
        space = cst.SimpleWhitespace(" ")
        return node.with_changes(iter=self.wrapped(operator, node.iter), whitespace_after_in=space)


class TellElement(Pass):
    """The elements of a list comprehension or generator expression go through an operator.

    What is done for one may change what the next one reads: then the comprehension is a loop that appends.

    Before:
        def f(cell, xs):
            return [cell(x) for x in xs]

    After:
        def f(cell, xs):
            return [d2s.element(cell(x)) for x in xs]

    An element that is a name, without conditions, does nothing, and stays as it is.

    Order: any.
    Refuses: nothing.
    Source: Python reference, 6.2.4 Displays for lists, sets and dictionaries.
    """

    constructs = (ast.comprehension,)

    @on(cst.ListComp, cst.GeneratorExp)
    def comprehension(self, node: cst.ListComp | cst.GeneratorExp) -> cst.ListComp | cst.GeneratorExp:
        """Rewrite one comprehension."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.ListComp | ast.GeneratorExp) or origin not in self.facts.active:
            return node
        if isinstance(origin.elt, ast.Name) and len(origin.generators) == 1 and not origin.generators[0].ifs:
            return node
        return node.with_changes(elt=self.wrapped("element", node.elt))


class GuardNativeTest(Pass):
    """A test that stays native is refused at run time if it is a tensor.

    Before:
        def f(xs):
            return [x for x in xs if x]

    After:
        def f(xs):
            return [x for x in xs if d2s.truth(x)]

    Order: any.
    Refuses: nothing.
    Source: Python reference, 6.2.4 Displays for lists, sets and dictionaries.
    """

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Whether any test stays native."""
        return bool(facts.native_tests)

    def visit(self, node: cst.CSTNode) -> object:
        """Wrap one test."""
        result = super().visit(node)
        origin = self.unit.origins.get(node)
        if origin in self.facts.native_tests and isinstance(result, cst.BaseExpression):
            return self.wrapped("truth", result)
        return result
