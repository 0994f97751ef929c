"""Loads of variables that may have no value."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, Unit, on

if TYPE_CHECKING:
    from dy2st.transforms.analysis import Facts


class LowerUnsureLoad(Pass):
    """A load that some path reaches without an assignment tells the run time the variable's name.

    Before:
        def f(x, flag):
            if flag:
                y = x
            return y

    After:
        def f(x, flag):
            if flag:
                y = x
            return d2s.read(y, "y")

    Order: any.
    Refuses: nothing.
    Source: Python reference, 4.2.2 Resolution of names.
    """

    constructs = (ast.Name,)

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit)
        self._quotes: list[str] = []

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Whether any load is unsure."""
        return bool(facts.unsure)

    @on(cst.FormattedString)
    def formatted_string(self, node: cst.FormattedString) -> cst.FormattedString:
        """Before Python 3.12 an f-string can't contain its own quotes."""
        self._quotes.append(node.start[-1])
        node = self.inside(node)
        self._quotes.pop()
        return node

    @on(cst.Name)
    def name(self, node: cst.Name) -> cst.BaseExpression:
        """Rewrite one load."""
        if self.unit.origin(node) not in self.facts.unsure:
            return node
        quote = next((q for q in "\"'" if q not in self._quotes), None)
        if quote is None:
            return node
        # Parentheses of the name stay outside: ``(y)`` and ``(d2s.read(y, "y"))``.
        inner = self.unit.at(node.with_changes(lpar=[], rpar=[]), self.unit.origin(node))
        return self.operator("read", inner, build.string(node.value, quote)).with_changes(
            lpar=node.lpar, rpar=node.rpar
        )
