"""Comparisons, chained ones too: of what may be two lists or tuples, ``in``, ``is None``.

Any other comparison is the operands' own business.
"""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, on
from dy2st.transforms.walruses import announced, names_bound, rebound

# The comparisons that Python does not ask the operands about.
SPECIAL = (ast.In, ast.NotIn, ast.Is, ast.IsNot)


# Operators of which one side is a list, tuple or dict if the result is, and functions that give none of these.
_JOINING = (ast.Add, ast.Mult, ast.BitOr)
_NUMBERS = frozenset("len int float bool abs round ord id hash isinstance str repr".split())
# Methods by which people reduce a tensor, or map it: no container has them.
_OF_TENSORS = frozenset(
    "abs all amax amin any argmax argmin dim exp item log max mean median min norm numel prod sigmoid sqrt square std "
    "sum tanh var".split()
)
# The comparisons of containers.
_OF_PARTS = {
    cst.Equal: "equal",
    cst.NotEqual: "not_equal",
    cst.LessThan: "less",
    cst.LessThanEqual: "less_equal",
    cst.GreaterThan: "greater",
    cst.GreaterThanEqual: "greater_equal",
}


def is_shape(side: ast.expr) -> bool:
    """``x.shape`` or ``x.size()``."""
    match side:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"), args=[]):
            return True
    return False


def _may_be_of_parts(side: ast.expr, shadowed: frozenset[str]) -> bool:
    """Whether a value may be a list, tuple or dict: Python counts the elements of two before it looks at any."""
    match side:
        case ast.Constant() | ast.JoinedStr() | ast.UnaryOp() | ast.Compare():
            return False
        case ast.Subscript(value=value, slice=place) if is_shape(value):
            return isinstance(place, ast.Slice)
        case ast.BinOp(op=op):
            return isinstance(op, _JOINING) and any(
                _may_be_of_parts(each, shadowed) for each in (side.left, side.right)
            )
        case ast.Call(func=ast.Name(id=name)):
            return name not in _NUMBERS or name in shadowed
        case ast.Call(func=ast.Attribute(attr=name)):
            return name not in _OF_TENSORS
    return True


def _is_special(operator: ast.cmpop, sides: tuple[ast.expr, ast.expr], shadowed: frozenset[str]) -> bool:
    """Whether a comparison becomes a call."""
    if isinstance(operator, SPECIAL):
        return True
    return all(_may_be_of_parts(each, shadowed) for each in sides)


class LowerComparison(Pass):
    """A chain becomes an ``and`` that evaluates each operand once; membership and ``is None`` become calls.

    So do ``==`` and ``<`` of what may be two lists, tuples or dicts: neither is a number, a text or made by arithmetic.

    Before:
        def f(a, b, c):
            x = a < b <= 1
            return a in c, a not in c, b is None, a == b, a == 1, a.sum() > c

    After:
        def f(a, b, c):
            x = d2s.and_(and_2 := d2s.lazy_and(d2s.less(a, (value_2 := b))), value_2 <= 1 if and_2.more() else None)
            return d2s.in_(a, c), d2s.not_in(a, c), d2s.is_(b, None), d2s.equal(a, b), a == 1, a.sum() > c

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
            if not _is_special(origin.ops[0], (origin.left, origin.comparators[0]), self.facts.shadowed):
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
            sides = (self.unit.fit(build.argument, side) for side in (left, right))
            return self.operator((names | _OF_PARTS)[type(operator)], *sides)
        return cst.Comparison(left, [cst.ComparisonTarget(operator, right)])

    def _chain(
        self, left: cst.BaseExpression, targets: list[cst.ComparisonTarget], origin: ast.Compare, position: int
    ) -> cst.BaseExpression:
        target = targets[position]
        sides = [origin.left, *origin.comparators]
        special = _is_special(origin.ops[position], (sides[position], sides[position + 1]), self.facts.shadowed)
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
