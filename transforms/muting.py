"""Statements that compute nothing: what they would bind is unknown, so that the code after them can be looked at.

This pass is none of ``PASSES``: it runs before them, where the lines of refused statements are known from earlier runs
(``dy2st check --all-errors``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.analysis.scope import walruses
from dy2st.transforms.tree import Node, Pass, on

if TYPE_CHECKING:
    from dy2st.transforms.tree import Unit


# The part of a compound statement that it evaluates.
EVALUATED: dict[type[cst.CSTNode], str] = {cst.If: "test", cst.While: "test", cst.For: "iter", cst.Match: "subject"}


class Mute(IntEnum):
    """How much of a statement is muted: what it evaluates, or all of it."""

    VALUES = 1
    ALL = 2


class MuteStatement(Pass):
    """What the statements of the given lines evaluate is unknown; or all of them, with the names that they bind.

    Before:
        def f(x):
            y = refused(x)
            if refused(y):
                y = x
            return y

    After:
        def f(x):
            y = d2s.muted()
            if d2s.muted():
                y = x
            return y

    Order: before all others, which then see an ordinary call.
    Refuses: nothing.
    Source: the idea is that of compilers which go on after an error with a value of no type.
    """

    constructs = (ast.stmt,)

    def __init__(self, unit: Unit, lines: Mapping[int, Mute]) -> None:
        super().__init__(unit)
        self.lines = lines

    def _level(self, node: cst.CSTNode) -> Mute | None:
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.stmt):
            return None
        return max((self.lines[line] for line in header_lines(origin) if line in self.lines), default=None)

    def _unknown(self, *replaced: ast.AST | None) -> cst.Call:
        """``d2s.muted()``; names that a walrus in what it replaces would bind are bound."""
        walrus = [n.target.id for part in replaced if part is not None for n in walruses(part)]
        return self.operator("muted", *(build.walrus(name, self.operator("muted")) for name in walrus))

    # ---- statements on a line

    @on(cst.Assign, cst.AnnAssign, cst.Return, cst.Expr)
    def value(self, node: cst.Assign | cst.AnnAssign | cst.Return | cst.Expr) -> cst.CSTNode:
        """A statement with a value."""
        level, origin = self._level(node), self.unit.origin(node)
        if level is None or node.value is None:
            return node
        if level is Mute.ALL and not isinstance(node, cst.Return):
            return self.other(node)
        return node.with_changes(value=self._unknown(getattr(origin, "value", None)))

    @on(cst.AugAssign, cst.Assert, cst.Raise, cst.Del, cst.Import, cst.ImportFrom)
    def other(self, node: cst.BaseSmallStatement) -> cst.CSTNode:
        """A statement without a value of its own."""
        level, origin = self._level(node), self.unit.origin(node)
        if level is None or origin is None:
            return node
        if level is Mute.VALUES and isinstance(node, cst.AugAssign):
            return self.unit.at(cst.Assign([cst.AssignTarget(node.target)], self._unknown(origin)), origin)
        return self.unit.at(self._bound(origin), origin)

    def _bound(self, origin: ast.AST) -> cst.BaseSmallStatement:
        """The names that a statement binds, without a value known."""
        names = list(dict.fromkeys(bound_names(origin)))
        outer = {
            name for n in ast.walk(self.facts.root) if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names
        }
        targets = [cst.AssignTarget(cst.Name(name)) for name in names if name not in outer]
        return cst.Assign(targets, self.operator("muted")) if targets else cst.Pass()

    # ---- compound statements

    @on(cst.If, cst.While, cst.For, cst.Match, cst.With, cst.Try)
    def compound(self, node: Node) -> Node | cst.CSTNode | list[cst.BaseStatement]:
        """What it evaluates is unknown; of a ``try`` only the suites remain, its handlers apart."""
        level, origin = self._level(node), self.unit.origin(node)
        if level is Mute.ALL and not (isinstance(node, cst.If) and self._is_elif(node)):
            return self._nothing(node)
        node = self.inside(node)
        if level is None:
            return node
        if isinstance(node, cst.With):
            return node.with_changes(items=[item.with_changes(item=self._unknown()) for item in node.items])
        if isinstance(node, cst.Try):
            suites = [node.body, *(part.body for part in (node.orelse, node.finalbody) if part is not None)]
            return [statement for suite in suites for statement in build.body_of(suite)]
        field = EVALUATED[type(node)]
        return node.with_changes(**{field: self._unknown(getattr(origin, field, None))})

    def _is_elif(self, node: cst.If) -> bool:
        origin = self.unit.origin(node)
        around = (n for n in ast.walk(self.facts.root) if isinstance(n, ast.If))
        return any(n.orelse == [origin] and n.col_offset == getattr(origin, "col_offset", None) for n in around)

    @on(cst.FunctionDef, cst.ClassDef)
    def definition(self, node: cst.FunctionDef | cst.ClassDef) -> cst.CSTNode:
        """A definition inside the function."""
        if node is not self.unit.node and self._level(node) is not None:
            return self._nothing(node)
        return self.inside(node)

    @on(cst.Lambda)
    def lambda_(self, node: cst.Lambda) -> cst.Lambda:
        """A lambda that is all of the unit."""
        origin = self.unit.origin(node)
        if node is not self.unit.node or not isinstance(origin, ast.Lambda):
            return self.inside(node)
        lines = range(origin.lineno, (origin.end_lineno or origin.lineno) + 1)
        muted = any(line in self.lines for line in lines)
        return node.with_changes(body=self._unknown(origin.body)) if muted else node

    def _nothing(self, node: cst.CSTNode) -> cst.CSTNode:
        origin = self.unit.origin(node)
        assert origin is not None
        return self.unit.at(build.line(self._bound(origin)), origin)


def header_lines(statement: ast.stmt) -> range:
    """The lines of a statement; of a compound one those before its first suite."""
    first = statement.lineno
    suite = getattr(statement, "body", None)
    if isinstance(statement, ast.Match):
        inner: int | None = statement.cases[0].pattern.lineno
    else:
        inner = suite[0].lineno if isinstance(suite, list) and suite else None
    if inner is None:
        return range(first, (statement.end_lineno or first) + 1)
    return range(first, max(first + 1, inner))


def bound_names(statement: ast.AST) -> Iterator[str]:
    """The variables of the function around it that a statement may bind."""
    stack = [statement]
    while stack:
        node = stack.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
                continue
            case ast.alias():
                yield node.asname or node.name.partition(".")[0]
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                yield from (inner.target.id for inner in walruses(node))
                continue
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
        stack.extend(ast.iter_child_nodes(node))
