"""Which ``ast`` expression a libcst expression stands for: see ``dy2st.transforms.pairing``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst

Pair = tuple[cst.CSTNode, ast.AST]


def operands(node: cst.BooleanOperation) -> list[cst.BaseExpression]:
    """``a and b and c`` as [a, b, c]; libcst nests to the left, and parentheses end the chain."""
    found = [node.right]
    left: cst.BaseExpression = node.left
    while isinstance(left, cst.BooleanOperation) and not left.lpar and type(left.operator) is type(node.operator):
        found.append(left.right)
        left = left.left
    found.append(left)
    return found[::-1]


def fstring_fields(node: cst.BaseExpression) -> list[cst.FormattedStringExpression]:
    """The ``{...}`` fields of a string, across implicit concatenation."""
    if isinstance(node, cst.ConcatenatedString):
        return fstring_fields(node.left) + fstring_fields(node.right)
    if isinstance(node, cst.FormattedString):
        return [part for part in node.parts if isinstance(part, cst.FormattedStringExpression)]
    return []


def parameters(c: cst.Parameters, a: ast.arguments) -> Iterator[Pair]:
    """The default values of a function."""
    positional = [*c.posonly_params, *c.params]
    defaults = [p.default for p in positional if p.default is not None]
    yield from zip(defaults, a.defaults, strict=True)
    for param, default in zip(c.kwonly_params, a.kw_defaults, strict=True):
        if param.default is not None and default is not None:
            yield param.default, default


def _lambda(c: cst.Lambda, a: ast.Lambda) -> Iterator[Pair]:
    yield from parameters(c.params, a.args)
    yield c.body, a.body


def arguments(c: Sequence[cst.Arg], positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> Iterator[Pair]:
    """The arguments of a call, or the bases of a class: positional ones and keywords."""
    plain, named = iter(positional), iter(keywords)
    for arg in c:
        if arg.keyword is not None or arg.star == "**":
            keyword = next(named)
            yield arg, keyword
            yield arg.value, keyword.value
        else:
            value = next(plain)
            if isinstance(value, ast.Starred):
                yield arg, value
                value = value.value
            yield arg.value, value


def _value(c: Any, a: Any) -> Iterator[Pair]:
    yield c.value, a.value


def _named(c: cst.NamedExpr, a: ast.NamedExpr) -> Iterator[Pair]:
    yield c.target, a.target
    yield c.value, a.value


def _call(c: cst.Call, a: ast.Call) -> Iterator[Pair]:
    yield c.func, a.func
    yield from arguments(c.args, a.args, a.keywords)


def _subscript(c: cst.Subscript, a: ast.Subscript) -> Iterator[Pair]:
    yield c.value, a.value
    elements = c.slice
    single = len(elements) == 1 and not isinstance(elements[0].comma, cst.Comma)
    starred = isinstance(elements[0].slice, cst.Index) and elements[0].slice.star is not None
    if single and not starred:
        yield elements[0].slice, a.slice
    elif isinstance(a.slice, ast.Tuple):
        yield from zip((e.slice for e in elements), a.slice.elts, strict=True)


def _index(c: cst.Index, a: ast.expr) -> Iterator[Pair]:
    yield c.value, a.value if c.star is not None and isinstance(a, ast.Starred) else a


def _slice(c: cst.Slice, a: ast.Slice) -> Iterator[Pair]:
    for part, bound in ((c.lower, a.lower), (c.upper, a.upper), (c.step, a.step)):
        if part is not None and bound is not None:
            yield part, bound


def _binary(c: cst.BinaryOperation, a: ast.BinOp) -> Iterator[Pair]:
    yield c.left, a.left
    yield c.right, a.right


def _unary(c: cst.UnaryOperation, a: ast.AST) -> Iterator[Pair]:
    if isinstance(a, ast.UnaryOp):
        yield c.expression, a.operand


def _boolean(c: cst.BooleanOperation, a: ast.BoolOp) -> Iterator[Pair]:
    return zip(operands(c), a.values, strict=True)


def _comparison(c: cst.Comparison, a: ast.Compare) -> Iterator[Pair]:
    yield c.left, a.left
    yield from zip((t.comparator for t in c.comparisons), a.comparators, strict=True)


def _yield(c: cst.Yield, a: ast.Yield | ast.YieldFrom) -> Iterator[Pair]:
    if c.value is not None and a.value is not None:
        yield c.value.item if isinstance(c.value, cst.From) else c.value, a.value


def _ternary(c: cst.IfExp, a: ast.IfExp) -> Iterator[Pair]:
    yield c.test, a.test
    yield c.body, a.body
    yield c.orelse, a.orelse


def _elements(c: Any, a: Any) -> Iterator[Pair]:
    for element, item in zip(c.elements, a.elts, strict=True):
        if isinstance(element, cst.StarredElement):
            yield element, item
            yield element.value, item.value
        else:
            yield element.value, item


def _dict(c: cst.Dict, a: ast.Dict) -> Iterator[Pair]:
    for element, key, value in zip(c.elements, a.keys, a.values, strict=True):
        if isinstance(element, cst.DictElement) and key is not None:
            yield element.key, key
        yield element.value, value


def _clauses(c: cst.CompFor, a: Sequence[ast.comprehension]) -> Iterator[Pair]:
    clause: cst.CompFor | None = c
    for comprehension in a:
        if clause is None:
            break
        yield clause, comprehension
        yield clause.target, comprehension.target
        yield clause.iter, comprehension.iter
        yield from zip((i.test for i in clause.ifs), comprehension.ifs, strict=True)
        clause = clause.inner_for_in


def _comprehension(c: Any, a: Any) -> Iterator[Pair]:
    yield c.elt, a.elt
    yield from _clauses(c.for_in, a.generators)


def _dict_comprehension(c: cst.DictComp, a: ast.DictComp) -> Iterator[Pair]:
    yield c.key, a.key
    yield c.value, a.value
    yield from _clauses(c.for_in, a.generators)


def _fstring(c: cst.BaseExpression, a: ast.AST) -> Iterator[Pair]:
    if isinstance(a, ast.JoinedStr):
        values = [v for v in a.values if isinstance(v, ast.FormattedValue)]
        yield from zip(fstring_fields(c), values, strict=True)


def _field(c: cst.FormattedStringExpression, a: ast.FormattedValue) -> Iterator[Pair]:
    yield c.expression, a.value
    if c.format_spec is not None and isinstance(a.format_spec, ast.JoinedStr):
        inner = [p for p in c.format_spec if isinstance(p, cst.FormattedStringExpression)]
        yield from zip(inner, (v for v in a.format_spec.values if isinstance(v, ast.FormattedValue)), strict=True)


EXPRESSIONS: dict[type[cst.CSTNode], Callable[[Any, Any], Iterator[Pair]]] = {
    cst.Attribute: _value,
    cst.Await: lambda c, a: iter([(c.expression, a.value)]),
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _boolean,
    cst.Call: _call,
    cst.Comparison: _comparison,
    cst.ConcatenatedString: _fstring,
    cst.Dict: _dict,
    cst.DictComp: _dict_comprehension,
    cst.Expr: _value,
    cst.FormattedString: _fstring,
    cst.FormattedStringExpression: _field,
    cst.GeneratorExp: _comprehension,
    cst.IfExp: _ternary,
    cst.Index: _index,
    cst.Lambda: _lambda,
    cst.List: _elements,
    cst.ListComp: _comprehension,
    cst.NamedExpr: _named,
    cst.Set: _elements,
    cst.SetComp: _comprehension,
    cst.Slice: _slice,
    cst.Subscript: _subscript,
    cst.Tuple: _elements,
    cst.UnaryOperation: _unary,
    cst.Yield: _yield,
}
