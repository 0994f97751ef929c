"""Which ``ast`` node a libcst node stands for: the two trees of one text, walked side by side.

libcst keeps the text but computes positions only at a price, and dataflow is shorter to write on ``ast``. Both trees
mirror Python's grammar, so a walk that knows the few places where they differ (suites, arguments, ``elif``, n-ary
``and``/``or``, subscripts, f-strings) pairs them exactly, without looking at a position.

Nodes that no pass looks into (patterns, imports, literals) are not paired further: the whole subtree goes together.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst

from dy2st.transforms.pairing_expressions import EXPRESSIONS, Pair, arguments, parameters


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


def _function(c: cst.FunctionDef, a: ast.FunctionDef) -> Iterator[Pair]:
    if c.decorators:  # the outermost definition is parsed, and written, without its own
        yield from zip((d.decorator for d in c.decorators), a.decorator_list, strict=True)
    yield from parameters(c.params, a.args)
    if c.returns is not None and a.returns is not None:
        yield c.returns.annotation, a.returns
    yield from suite(c.body, a.body)


def _class(c: cst.ClassDef, a: ast.ClassDef) -> Iterator[Pair]:
    yield from zip((d.decorator for d in c.decorators), a.decorator_list, strict=True)
    yield from arguments([*c.bases, *c.keywords], a.bases, a.keywords)
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


CHILDREN: dict[type[cst.CSTNode], Callable[[Any, Any], Iterator[Pair]]] = {
    **EXPRESSIONS,
    cst.AnnAssign: _annotated,
    cst.Assert: _assert,
    cst.Assign: _assign,
    cst.AugAssign: _augmented,
    cst.ClassDef: _class,
    cst.Del: _del,
    cst.For: _for,
    cst.FunctionDef: _function,
    cst.If: _if,
    cst.Match: _match,
    cst.MatchAs: _match_as,
    cst.MatchOr: _alternatives,
    cst.MatchValue: _match_value,
    cst.Raise: _raise,
    cst.Return: _return,
    cst.Try: _try,
    cst.TryStar: _try,
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
