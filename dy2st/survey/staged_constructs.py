"""The control flow of a function that depends on what tensors hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dy2st.survey.value_kinds import Kind
from dy2st.survey.values import Values


@dataclass(frozen=True)
class Construct:
    """One ``if``, ``while``, ``for``... at a line; ``text`` is its condition or what it iterates over."""

    kind: str
    line: int
    column: int
    text: str
    node: ast.AST


def constructs(values: Values) -> Iterator[Construct]:
    """The staged constructs of a function, in the order of its lines."""
    found = [each for node in values.nodes for each in _of(node, values)]
    yield from sorted(found, key=lambda each: (each.line, each.column))


def _of(node: ast.AST, values: Values) -> Iterator[Construct]:
    if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        if values.kind(node.test) >= Kind.NUMBER:
            yield _made(_WORDS[type(node)], node.test)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        if _staged_iterable(node.iter, values):
            yield _made("for", node.iter)
    elif isinstance(node, ast.comprehension):
        if _staged_iterable(node.iter, values):
            yield _made("comprehension", node.iter)
        yield from (_made("comprehension if", test) for test in node.ifs if values.kind(test) >= Kind.NUMBER)
    elif isinstance(node, ast.Match) and values.kind(node.subject) >= Kind.NUMBER:
        yield _made("match", node.subject)


_WORDS: dict[type, str] = {ast.If: "if", ast.While: "while", ast.IfExp: "ternary", ast.Assert: "assert"}


def _staged_iterable(node: ast.expr, values: Values) -> bool:
    """Whether a loop goes over a tensor, or as often as one says: a loop over a list of tensors is Python's."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "range":
            return any(values.kind(each) >= Kind.NUMBER for each in node.args)
        if node.func.id in ("enumerate", "zip", "reversed", "list", "tuple"):
            return any(_staged_iterable(each, values) for each in node.args)
    return values.kind(node) >= Kind.NUMBER


def _made(kind: str, node: ast.expr) -> Construct:
    return Construct(kind, node.lineno, node.col_offset, ast.unparse(node), node)
