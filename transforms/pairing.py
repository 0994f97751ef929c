"""Which ``ast`` node a libcst node stands for: the two trees of one text, walked side by side.

libcst keeps the text but computes positions only at a price, and dataflow is shorter to write on ``ast``. Both trees
mirror Python's grammar, so a walk that knows the few places where they differ (suites, arguments, ``elif``, n-ary
``and``/``or``, subscripts, f-strings) pairs them exactly, without looking at a position.

Nodes that no pass looks into (patterns, imports, literals) are not paired further: the whole subtree goes together.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Pair = tuple[cst.CSTNode, ast.AST]


def statements(block: cst.BaseSuite | cst.Module) -> list[cst.CSTNode]:
    """The statements of a suite, one for each ``ast`` statement (``a; b`` is two)."""
    found: list[cst.CSTNode] = []
    for line in block.body:
        if isinstance(line, cst.SimpleStatementLine):
            found.extend(line.body)
        else:
            found.append(line)
    return found


def suite(block: cst.BaseSuite | cst.Module, body: Sequence[ast.stmt]) -> Iterator[Pair]:
    """The statements of a suite, paired."""
    return zip(statements(block), body, strict=True)


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


def _function(c: cst.FunctionDef, a: ast.FunctionDef) -> Iterator[Pair]:
    if c.decorators:  # the outermost definition is parsed, and written, without its own
        yield from zip((d.decorator for d in c.decorators), a.decorator_list, strict=True)
    yield from _parameters(c.params, a.args)
    if c.returns is not None and a.returns is not None:
        yield c.returns.annotation, a.returns
    yield from suite(c.body, a.body)


def _parameters(c: cst.Parameters, a: ast.arguments) -> Iterator[Pair]:
    positional = [*c.posonly_params, *c.params]
    defaults = [p.default for p in positional if p.default is not None]
    yield from zip(defaults, a.defaults, strict=True)
    for param, default in zip(c.kwonly_params, a.kw_defaults, strict=True):
        if param.default is not None and default is not None:
            yield param.default, default


def _lambda(c: cst.Lambda, a: ast.Lambda) -> Iterator[Pair]:
    yield from _parameters(c.params, a.args)
    yield c.body, a.body


def _arguments(c: Sequence[cst.Arg], positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> Iterator[Pair]:
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


def _class(c: cst.ClassDef, a: ast.ClassDef) -> Iterator[Pair]:
    yield from zip((d.decorator for d in c.decorators), a.decorator_list, strict=True)
    yield from _arguments([*c.bases, *c.keywords], a.bases, a.keywords)
    yield from suite(c.body, a.body)


def _if(c: cst.If, a: ast.If) -> Iterator[Pair]:
    yield c.test, a.test
    yield from suite(c.body, a.body)
    if isinstance(c.orelse, cst.If):
        yield c.orelse, a.orelse[0]
    elif c.orelse is not None:
        yield from suite(c.orelse.body, a.orelse)


def _for(c: cst.For, a: ast.For) -> Iterator[Pair]:
    yield c.target, a.target
    yield c.iter, a.iter
    yield from suite(c.body, a.body)
    if c.orelse is not None:
        yield from suite(c.orelse.body, a.orelse)


def _while(c: cst.While, a: ast.While) -> Iterator[Pair]:
    yield c.test, a.test
    yield from suite(c.body, a.body)
    if c.orelse is not None:
        yield from suite(c.orelse.body, a.orelse)


def _with(c: cst.With, a: ast.With) -> Iterator[Pair]:
    for item, withitem in zip(c.items, a.items, strict=True):
        yield item.item, withitem.context_expr
        if item.asname is not None and withitem.optional_vars is not None:
            yield item.asname.name, withitem.optional_vars
    yield from suite(c.body, a.body)


def _try(c: cst.Try | cst.TryStar, a: ast.Try) -> Iterator[Pair]:
    yield from suite(c.body, a.body)
    handlers: Sequence[cst.ExceptHandler | cst.ExceptStarHandler] = c.handlers
    for except_, handler in zip(handlers, a.handlers, strict=True):
        yield except_, handler
        if except_.type is not None and handler.type is not None:
            yield except_.type, handler.type
        yield from suite(except_.body, handler.body)
    if c.orelse is not None:
        yield from suite(c.orelse.body, a.orelse)
    if c.finalbody is not None:
        yield from suite(c.finalbody.body, a.finalbody)


def _match(c: cst.Match, a: ast.Match) -> Iterator[Pair]:
    yield c.subject, a.subject
    for case, match_case in zip(c.cases, a.cases, strict=True):
        yield case, match_case
        yield case.pattern, match_case.pattern
        if case.guard is not None and match_case.guard is not None:
            yield case.guard, match_case.guard
        yield from suite(case.body, match_case.body)


def _alternatives(c: cst.MatchOr, a: ast.AST) -> Iterator[Pair]:
    if isinstance(a, ast.MatchOr):
        yield from zip((p.pattern for p in c.patterns), a.patterns, strict=True)


def _match_value(c: cst.MatchValue, a: ast.AST) -> Iterator[Pair]:
    if isinstance(a, ast.MatchValue):
        yield c.value, a.value


def _match_as(c: cst.MatchAs, a: ast.AST) -> Iterator[Pair]:
    if isinstance(a, ast.MatchAs) and c.pattern is not None and a.pattern is not None:
        yield c.pattern, a.pattern


def _assign(c: cst.Assign, a: ast.Assign) -> Iterator[Pair]:
    yield from zip((t.target for t in c.targets), a.targets, strict=True)
    yield c.value, a.value


def _annotated(c: cst.AnnAssign, a: ast.AnnAssign) -> Iterator[Pair]:
    yield c.target, a.target
    yield c.annotation.annotation, a.annotation
    if c.value is not None and a.value is not None:
        yield c.value, a.value


def _augmented(c: cst.AugAssign, a: ast.AugAssign) -> Iterator[Pair]:
    yield c.target, a.target
    yield c.value, a.value


def _assert(c: cst.Assert, a: ast.Assert) -> Iterator[Pair]:
    yield c.test, a.test
    if c.msg is not None and a.msg is not None:
        yield c.msg, a.msg


def _del(c: cst.Del, a: ast.Delete) -> Iterator[Pair]:
    if len(a.targets) == 1 and not (isinstance(c.target, cst.Tuple) and not isinstance(a.targets[0], ast.Tuple)):
        yield c.target, a.targets[0]
    elif isinstance(c.target, cst.Tuple):
        yield from zip((e.value for e in c.target.elements), a.targets, strict=True)


def _return(c: cst.Return, a: ast.Return) -> Iterator[Pair]:
    if c.value is not None and a.value is not None:
        yield c.value, a.value


def _raise(c: cst.Raise, a: ast.Raise) -> Iterator[Pair]:
    if c.exc is not None and a.exc is not None:
        yield c.exc, a.exc
    if c.cause is not None and a.cause is not None:
        yield c.cause.item, a.cause


def _value(c: Any, a: Any) -> Iterator[Pair]:
    yield c.value, a.value


def _named(c: cst.NamedExpr, a: ast.NamedExpr) -> Iterator[Pair]:
    yield c.target, a.target
    yield c.value, a.value


def _call(c: cst.Call, a: ast.Call) -> Iterator[Pair]:
    yield c.func, a.func
    yield from _arguments(c.args, a.args, a.keywords)


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


CHILDREN: dict[type[cst.CSTNode], Callable[[Any, Any], Iterator[Pair]]] = {
    cst.AnnAssign: _annotated,
    cst.Assert: _assert,
    cst.Assign: _assign,
    cst.Attribute: _value,
    cst.AugAssign: _augmented,
    cst.Await: lambda c, a: iter([(c.expression, a.value)]),
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _boolean,
    cst.Call: _call,
    cst.ClassDef: _class,
    cst.Comparison: _comparison,
    cst.ConcatenatedString: _fstring,
    cst.Del: _del,
    cst.Dict: _dict,
    cst.DictComp: _dict_comprehension,
    cst.Expr: _value,
    cst.For: _for,
    cst.FormattedString: _fstring,
    cst.FormattedStringExpression: _field,
    cst.FunctionDef: _function,
    cst.GeneratorExp: _comprehension,
    cst.If: _if,
    cst.IfExp: _ternary,
    cst.Index: _index,
    cst.Lambda: _lambda,
    cst.List: _elements,
    cst.ListComp: _comprehension,
    cst.Match: _match,
    cst.MatchAs: _match_as,
    cst.MatchOr: _alternatives,
    cst.MatchValue: _match_value,
    cst.NamedExpr: _named,
    cst.Raise: _raise,
    cst.Return: _return,
    cst.Set: _elements,
    cst.SetComp: _comprehension,
    cst.Slice: _slice,
    cst.Subscript: _subscript,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.Tuple: _elements,
    cst.UnaryOperation: _unary,
    cst.While: _while,
    cst.With: _with,
}


def children(c: cst.CSTNode, a: ast.AST) -> Iterator[Pair]:
    """The paired children of two paired nodes."""
    walk = CHILDREN.get(type(c))
    return walk(c, a) if walk is not None else iter(())


def pair(c: cst.CSTNode, a: ast.AST) -> dict[cst.CSTNode, ast.AST]:
    """Every libcst node of a tree with its ``ast`` node."""
    origins: dict[cst.CSTNode, ast.AST] = {}
    rest = [(c, a)]
    while rest:
        c, a = rest.pop()
        origins[c] = a
        rest.extend(children(c, a))
    return origins
