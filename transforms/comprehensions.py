"""Comprehensions: their iterables and their conditions."""

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
            return [x for x in xs if x]

    After:
        def f(xs):
            return [x for x in d2s.each(xs) if x]

    Order: any; the conditions are ``GuardNativeTest``'s.
    Refuses: nothing.
    Source: Python reference, 6.2.4 Displays for lists, sets and dictionaries.
    """

    constructs = (ast.comprehension,)

    @on(cst.CompFor)
    def comp_for(self, node: cst.CompFor) -> cst.CompFor:
        """Rewrite one ``for`` clause."""
        node = self.inside(node)
        if self.unit.origin(node) not in self.facts.active or node.asynchronous is not None:
            return node
        space = cst.SimpleWhitespace(" ")
        return node.with_changes(iter=self.wrapped("each", node.iter), whitespace_after_in=space)


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
