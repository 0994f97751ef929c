"""Chained comparisons, ``in``, ``is None``; any other comparison is the operands' own business."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.analysis.shapes import reads_like_a_shape
from dy2st.transforms.tree import Pass, on
from dy2st.transforms.walruses import announced, names_bound, rebound

# The comparisons that Python does not ask the operands about.
SPECIAL = (ast.In, ast.NotIn, ast.Is, ast.IsNot)


def _of_lists(origin: ast.Compare) -> bool:
    """Whether something is compared with a list or dict display: Python counts elements before it looks at any."""
    displays = any(isinstance(side, ast.List | ast.Dict) for side in (origin.left, origin.comparators[0]))
    return displays and isinstance(origin.ops[0], (ast.Eq, ast.NotEq))


def _of_names(origin: ast.Compare) -> bool:
    """Whether two variables are compared, which in a function that makes dicts may be two of these."""
    sides = (origin.left, origin.comparators[0])
    return isinstance(origin.ops[0], (ast.Eq, ast.NotEq)) and all(isinstance(side, ast.Name) for side in sides)


def _of_shapes(origin: ast.Compare, names: frozenset[str]) -> bool:
    """Whether what reads like a tensor's shape is compared: Python compares its sizes one by one."""
    sides = (origin.left, origin.comparators[0])
    return isinstance(origin.ops[0], (ast.Eq, ast.NotEq)) and any(reads_like_a_shape(side, names) for side in sides)


class LowerComparison(Pass):
    """A chain becomes an ``and`` that evaluates each operand once; membership and ``is None`` become calls.

    So does ``==`` with a list or dict display, of shapes, and of two variables beside a dict display.

    Before:
        def f(a, b, c):
            x = a < b <= c
            return a in c, a not in c, b is None

    After:
        def f(a, b, c):
            x = d2s.and_(and_2 := d2s.lazy_and(a < (value_2 := b)), value_2 <= c if and_2.more() else None)
            return d2s.in_(a, c), d2s.not_in(a, c), d2s.is_(b, None)

    Order: any.
    Refuses: nothing; a chain where ``:=`` may not stand stays as it is.
    Source: Python reference, 6.10 Comparisons.
    """

    constructs = (ast.Compare,)

    @on(cst.Comparison)
    def comparison(self, node: cst.Comparison) -> cst.BaseExpression:
        """Rewrite one comparison."""
        node = self.inside(node)
        origin = self.active(node, ast.Compare)
        if origin is None:
            return node
        if len(node.comparisons) == 1:
            dicts = _of_names(origin) and not self.facts.kinds.isdisjoint((ast.Dict, ast.DictComp))
            parts = dicts or _of_lists(origin) or _of_shapes(origin, self.facts.shapes)
            if not isinstance(origin.ops[0], SPECIAL) and not parts:
                return node
            target = node.comparisons[0]
            return self._two(node.left, target.operator, target.comparator, special=True)
        if origin in self.facts.no_walrus:
            return node
        return self._chain(node.left, list(node.comparisons), origin, 0)

    def _two(
        self, left: cst.BaseExpression, operator: cst.BaseCompOp, right: cst.BaseExpression, *, special: bool
    ) -> cst.BaseExpression:
        if special:
            names: dict[type, str] = {cst.In: "in_", cst.NotIn: "not_in", cst.Is: "is_", cst.IsNot: "is_not"}
            names |= {cst.Equal: "same_list", cst.NotEqual: "not_same_list"}
            sides = (self.unit.fit(build.argument, side) for side in (left, right))
            return self.operator(names[type(operator)], *sides)
        return cst.Comparison(left, [cst.ComparisonTarget(operator, right)])

    def _chain(
        self, left: cst.BaseExpression, targets: list[cst.ComparisonTarget], origin: ast.Compare, position: int
    ) -> cst.BaseExpression:
        target = targets[position]
        special = isinstance(origin.ops[position], SPECIAL)
        if position == len(targets) - 1:
            return self.unit.at(self._two(left, target.operator, target.comparator, special=special), origin)
        word = self.unit.names.fresh("and", origin.lineno)
        value = self.unit.names.fresh("value", origin.lineno)
        kept = build.grouped(cst.NamedExpr(cst.Name(value), self.unit.fit(build.argument, target.comparator)))
        self.unit.at(kept, self.unit.place(target.comparator))
        first = self.unit.at(self._two(left, target.operator, kept, special=special), origin)
        rest = self._chain(cst.Name(value), targets, origin, position + 1)
        rest = announced(self, rest, origin.comparators[position + 1])
        bound = names_bound(self, *origin.comparators[position + 1 :])
        started = build.walrus(word, self.operator("lazy_and", first, *(build.string(each) for each in bound)))
        second = build.ternary(build.method(word, "more"), rest)
        result = self.operator("and_test" if origin in self.facts.conditions else "and_", started, second)
        return rebound(result, word, bound)
