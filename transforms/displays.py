"""Lists, dicts and sets that the function makes itself."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.tree import Pass, on

# What they make is only known to be complete where they end.
COMPREHENSIONS = (cst.ListComp, cst.DictComp, cst.SetComp)


class MarkDisplay(Pass):
    """A container made on the spot is marked as new.

    What is done to it inside the same arm or iteration is no change of the state around.

    Before:
        def f(x):
            rows = [x]
            rows.append(x)
            return torch.stack([x, x])

    After:
        def f(x):
            rows = d2s.new([x])
            rows.append(x)
            return torch.stack([x, x])

    Order: any. A display that is an argument, an iterable or an operand of ``in`` stays as it is, but for a dict that
        takes over the keys of another.
    Refuses: nothing.
    Source: Python reference, 6.2.4 Displays for lists, sets and dictionaries.
    """

    constructs = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)

    def run(self) -> None:
        """Rewrite the unit."""
        self.plain: set[cst.CSTNode] = set()
        super().run()

    @on(cst.Arg)
    def arg(self, node: cst.Arg) -> cst.Arg:
        """An argument."""
        self.plain.add(node.value)
        return self.inside(node)

    @on(cst.CompFor)
    def comp_for(self, node: cst.CompFor) -> cst.CompFor:
        """The iterable of a comprehension."""
        self.plain.add(node.iter)
        return self.inside(node)

    @on(cst.For)
    def for_(self, node: cst.For) -> cst.For:
        """The iterable of a loop."""
        self.plain.add(node.iter)
        return self.inside(node)

    @on(cst.Index)
    def index(self, node: cst.Index) -> cst.Index:
        """A subscript."""
        self.plain.add(node.value)
        return self.inside(node)

    @on(cst.ComparisonTarget)
    def comparison_target(self, node: cst.ComparisonTarget) -> cst.ComparisonTarget:
        """The right operand of a comparison."""
        self.plain.add(node.comparator)
        return self.inside(node)

    @on(cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp)
    def display(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A display that is a value of its own."""
        merged = isinstance(node, cst.Dict) and any(isinstance(e, cst.StarredDictElement) for e in node.elements)
        plain = node in self.plain and not isinstance(node, COMPREHENSIONS) and not merged
        result = self.inside(node)
        origin = self.unit.origin(result)
        if plain or origin not in self.facts.active or isinstance(getattr(origin, "ctx", None), (ast.Store, ast.Del)):
            return result
        return self.wrapped("new", result)
