"""``assert``: the test is told to the run time, which may have to stage it."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.analysis.python_tests import python_only
from dy2st.transforms.tree import Pass, on


class LowerAssert(Pass):
    """The test of an ``assert`` goes through an operator.

    Before:
        def f(x):
            assert x.min() > 0, "positive"
            return x

    After:
        def f(x):
            assert d2s.assertion(x.min() > 0), "positive"
            return x

    Order: any.
    Refuses: nothing; a test that only Python can decide stays as it is.
    Source: Python reference, 7.3 The assert statement.
    """

    constructs = (ast.Assert,)

    @on(cst.Assert)
    def assert_(self, node: cst.Assert) -> cst.Assert:
        """Wrap the test."""
        node = self.inside(node)
        origin = self.active(node, ast.Assert)
        if origin is None or python_only(origin.test, self.facts.shadowed):
            return node
        return node.with_changes(
            test=self.wrapped("assertion", node.test), whitespace_after_assert=cst.SimpleWhitespace(" ")
        )
