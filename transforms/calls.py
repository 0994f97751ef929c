"""Calls: the run time may follow them, or give another callee."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.analysis.python_tests import PYTHON_TESTS
from dy2st.transforms.analysis.scope import SCOPE_CALLS
from dy2st.transforms.tree import Pass, on

# They look at the frame that calls them.
FRAME_CALLS = frozenset({"super", "globals"})
# Methods of texts that put values into them.
TEXT_METHODS = frozenset({"format", "format_map", "join"})


class LowerCall(Pass):
    """A callee goes through an operator.

    Before:
        def f(x):
            return g(x, k=1).sum()

    After:
        def f(x):
            return d2s.call(d2s.call(g)(x, k=1).sum)()

    ``next`` of a generator expression, which nobody else has, is the operator ``first``.

    Order: any.
    Refuses: ``super()`` and ``globals()``, which look at their caller, and tests of types stay as they are;
        ``locals()``, ``vars()`` and ``dir()`` lose the names that passes generate.
    Source: Python reference, 6.3.4 Calls.
    """

    constructs = (ast.Call,)

    @on(cst.Call)
    def call(self, node: cst.Call) -> cst.BaseExpression:
        """Rewrite one call."""
        node = self.inside(node)
        origin = self.active(node, ast.Call)
        if origin is None:
            return node
        match origin.func:
            case ast.Name(id=name) if name not in self.facts.shadowed:
                if name in FRAME_CALLS or name in PYTHON_TESTS:
                    return node
                if name in SCOPE_CALLS and not origin.args and not origin.keywords:
                    return self.operator("visible", node)
                if name == "next" and origin.args and isinstance(origin.args[0], ast.GeneratorExp):
                    return node.with_changes(func=self.operator("first").func)
            case ast.Attribute(value=ast.Constant(value=str()), attr=name) if name not in TEXT_METHODS:
                return node
        return node.with_changes(func=self.wrapped("call", node.func))
