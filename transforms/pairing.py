"""Which ``ast`` node a libcst node stands for: the two trees of one text, walked side by side.

libcst keeps the text but computes positions only at a price, and dataflow is shorter to write on ``ast``. Both trees
mirror Python's grammar, so a walk that knows the few places where they differ (suites, arguments, ``elif``, n-ary
``and``/``or``, subscripts, f-strings) pairs them exactly, without looking at a position.

Nodes that no pass looks into (patterns, imports, literals) are not paired further: the whole subtree goes together.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import libcst as cst

Pair = tuple[cst.CSTNode, ast.AST]
Walk = Callable[[Any, Any], Iterable[Pair]]


def statements(block: cst.BaseSuite | cst.Module) -> list[cst.CSTNode]:
    """The statements of a suite, one for each ``ast`` statement (``a; b`` is two)."""
    found: list[cst.CSTNode] = []
    for line in block.body:
        if isinstance(line, cst.SimpleStatementLine):
            found.extend(line.body)
        else:
            found.append(line)
    return found


def operands(node: cst.BooleanOperation) -> list[cst.BaseExpression]:
    """``a and b and c`` as [a, b, c]; libcst nests to the left, and parentheses end the chain."""
    found = [node.right]
    left: cst.BaseExpression = node.left
    while isinstance(left, cst.BooleanOperation) and not left.lpar and type(left.operator) is type(node.operator):
        found.append(left.right)
        left = left.left
    found.append(left)
    return found[::-1]


# ---- parts that both trees have


def _at(node: Any, names: Sequence[str]) -> Any:
    """The part of a node at a path of attributes; of a list, the parts of its items. None where there is none."""
    for name in names:
        several = isinstance(node, (list, tuple))
        node = [getattr(each, name, None) for each in node] if several else getattr(node, name, None)
    return node


def _both(c: Any, a: Any) -> Sequence[Pair]:
    """What is there in both trees; lists item by item, suites statement by statement."""
    if c is None or a is None:
        return ()
    if isinstance(a, list):
        items = statements(c) if isinstance(c, cst.BaseSuite) else c
        return [found for found in zip(items, a, strict=True) if None not in found]
    return ((c, a),)


def _parts(paths: str) -> Walk:
    """The parts at these paths, each as libcst has it and, behind ``=``, as ``ast`` has it, if in another place."""
    both = [
        (mine.split("."), (other or mine).split(".")) for mine, _, other in (p.partition("=") for p in paths.split())
    ]
    return lambda c, a: itertools.chain.from_iterable([_both(_at(c, mine), _at(a, other)) for mine, other in both])


# ---- what differs


def _function(c: cst.FunctionDef, a: ast.FunctionDef) -> Iterator[Pair]:
    if c.decorators:  # the outermost definition is parsed, and written, without its own
        yield from _both([d.decorator for d in c.decorators], a.decorator_list)
    yield from _parameters(c.params, a.args)
    if c.returns is not None and a.returns is not None:
        yield c.returns.annotation, a.returns
    yield from _both(c.body, a.body)


def _parameters(c: cst.Parameters, a: ast.arguments) -> Iterator[Pair]:
    """The default values of a function."""
    positional = [*c.posonly_params, *c.params]
    yield from _both([p.default for p in positional if p.default is not None], a.defaults)
    yield from _both([p.default for p in c.kwonly_params], a.kw_defaults)


def _lambda(c: cst.Lambda, a: ast.Lambda) -> Iterator[Pair]:
    yield from _parameters(c.params, a.args)
    yield c.body, a.body


def _class(c: cst.ClassDef, a: ast.ClassDef) -> Iterator[Pair]:
    yield from _both([d.decorator for d in c.decorators], a.decorator_list)
    yield from _arguments([*c.bases, *c.keywords], a.bases, a.keywords)
    yield from _both(c.body, a.body)


def _call(c: cst.Call, a: ast.Call) -> Iterator[Pair]:
    yield c.func, a.func
    yield from _arguments(c.args, a.args, a.keywords)


def _arguments(c: Sequence[cst.Arg], positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> Iterator[Pair]:
    """The arguments of a call, or the bases of a class: positional ones and keywords."""
    plain, named = iter(positional), iter(keywords)
    for arg in c:
        if arg.keyword is not None or arg.star == "**":
            yield arg, next(named)
        else:
            value = next(plain)
            yield (arg if isinstance(value, ast.Starred) else arg.value), value


def _if(c: cst.If, a: ast.If) -> Iterator[Pair]:
    yield c.test, a.test
    yield from _both(c.body, a.body)
    if isinstance(c.orelse, cst.If):
        yield c.orelse, a.orelse[0]
    elif c.orelse is not None:
        yield from _both(c.orelse.body, a.orelse)


def _del(c: cst.Del, a: ast.Delete) -> Iterator[Pair]:
    if len(a.targets) == 1 and not (isinstance(c.target, cst.Tuple) and not isinstance(a.targets[0], ast.Tuple)):
        yield c.target, a.targets[0]
    elif isinstance(c.target, cst.Tuple):
        yield from _both([e.value for e in c.target.elements], a.targets)


def _subscript(c: cst.Subscript, a: ast.Subscript) -> Iterator[Pair]:
    yield c.value, a.value
    elements = c.slice
    single = len(elements) == 1 and not isinstance(elements[0].comma, cst.Comma)
    starred = isinstance(elements[0].slice, cst.Index) and elements[0].slice.star is not None
    if single and not starred:
        yield elements[0].slice, a.slice
    elif isinstance(a.slice, ast.Tuple):
        yield from _both([e.slice for e in elements], a.slice.elts)


def _index(c: cst.Index, a: ast.expr) -> Iterator[Pair]:
    yield c.value, a.value if c.star is not None and isinstance(a, ast.Starred) else a


def _yield(c: cst.Yield, a: ast.Yield | ast.YieldFrom) -> Iterable[Pair]:
    return _both(c.value.item if isinstance(c.value, cst.From) else c.value, a.value)


def _elements(c: Any, a: Any) -> Iterable[Pair]:
    return _both([each if isinstance(each, cst.StarredElement) else each.value for each in c.elements], a.elts)


def _comprehension(c: Any, a: Any) -> Iterator[Pair]:
    for name in ("key", "value") if isinstance(c, cst.DictComp) else ("elt",):
        yield getattr(c, name), getattr(a, name)
    clause: cst.CompFor | None = c.for_in
    for comprehension in a.generators:
        if clause is None:
            break
        yield clause, comprehension
        clause = clause.inner_for_in


def _fields(c: Any) -> list[cst.FormattedStringExpression]:
    """The ``{...}`` fields of a string, across implicit concatenation, or of a format in one."""
    if isinstance(c, cst.ConcatenatedString):
        return _fields(c.left) + _fields(c.right)
    parts = c.parts if isinstance(c, cst.FormattedString) else c if isinstance(c, Sequence) else ()
    return [part for part in parts if isinstance(part, cst.FormattedStringExpression)]


def _fstring(c: Any, a: ast.AST) -> Iterator[Pair]:
    if isinstance(a, ast.JoinedStr):
        yield from _both(_fields(c), [value for value in a.values if isinstance(value, ast.FormattedValue)])


def _field(c: cst.FormattedStringExpression, a: ast.FormattedValue) -> Iterator[Pair]:
    yield c.expression, a.value
    if c.format_spec is not None and a.format_spec is not None:
        yield from _fstring(c.format_spec, a.format_spec)


CHILDREN: dict[type[cst.CSTNode], Walk] = {
    cst.AnnAssign: _parts("target annotation.annotation=annotation value"),
    cst.Arg: _parts("value"),
    cst.Assert: _parts("test msg"),
    cst.Assign: _parts("targets.target=targets value"),
    cst.Attribute: _parts("value"),
    cst.AugAssign: _parts("target value"),
    cst.Await: _parts("expression=value"),
    cst.BinaryOperation: _parts("left right"),
    cst.BooleanOperation: lambda c, a: _both(operands(c), a.values),
    cst.Call: _call,
    cst.ClassDef: _class,
    cst.CompFor: _parts("target iter ifs.test=ifs"),
    cst.Comparison: _parts("left comparisons.comparator=comparators"),
    cst.ConcatenatedString: _fstring,
    cst.Del: _del,
    cst.Dict: _parts("elements.key=keys elements.value=values"),
    cst.DictComp: _comprehension,
    cst.ExceptHandler: _parts("type body"),
    cst.ExceptStarHandler: _parts("type body"),
    cst.Expr: _parts("value"),
    cst.For: _parts("target iter body orelse.body=orelse"),
    cst.FormattedString: _fstring,
    cst.FormattedStringExpression: _field,
    cst.FunctionDef: _function,
    cst.GeneratorExp: _comprehension,
    cst.If: _if,
    cst.IfExp: _parts("test body orelse"),
    cst.Index: _index,
    cst.Lambda: _lambda,
    cst.List: _elements,
    cst.ListComp: _comprehension,
    cst.Match: _parts("subject cases"),
    cst.MatchAs: _parts("pattern"),
    cst.MatchCase: _parts("pattern guard body"),
    cst.MatchOr: _parts("patterns.pattern=patterns"),
    cst.MatchValue: _parts("value"),
    cst.NamedExpr: _parts("target value"),
    cst.Raise: _parts("exc cause.item=cause"),
    cst.Return: _parts("value"),
    cst.Set: _elements,
    cst.SetComp: _comprehension,
    cst.Slice: _parts("lower upper step"),
    cst.StarredElement: _parts("value"),
    cst.Subscript: _subscript,
    cst.Try: _parts("body handlers orelse.body=orelse finalbody.body=finalbody"),
    cst.TryStar: _parts("body handlers orelse.body=orelse finalbody.body=finalbody"),
    cst.Tuple: _elements,
    cst.UnaryOperation: _parts("expression=operand"),
    cst.While: _parts("test body orelse.body=orelse"),
    cst.With: _parts("items.item=items.context_expr items.asname.name=items.optional_vars body"),
    cst.Yield: _yield,
}


def children(c: cst.CSTNode, a: ast.AST) -> Iterable[Pair]:
    """The paired children of two paired nodes."""
    walk = CHILDREN.get(type(c))
    return walk(c, a) if walk is not None else ()


def pair(c: cst.CSTNode, a: ast.AST) -> dict[cst.CSTNode, ast.AST]:
    """Every libcst node of a tree with its ``ast`` node."""
    origins: dict[cst.CSTNode, ast.AST] = {}
    rest = [(c, a)]
    while rest:
        c, a = rest.pop()
        origins[c] = a
        rest.extend(children(c, a))
    return origins
