"""Liveness: which names may still be read after a statement.

Backwards over the statements of one function, with a fixpoint at loops. Where the program may jump (``break``,
``continue``, ``return``, an exception inside ``try`` or ``with``), the names that are live at the jump's target are
live at the jump. When in doubt a name is live.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dy2st.transforms.analysis.scope import NO_NAMES, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

Live = frozenset[str]


@dataclass
class Split:
    """Live names around a two-way split."""

    after: Live = NO_NAMES
    orelse: Live = NO_NAMES

    def grow(self, after: Live, orelse: Live) -> None:
        """Add what another visit (of a loop's fixpoint) found."""
        self.after |= after
        self.orelse |= orelse


@dataclass
class Around:
    """Live names around a loop: at its head, at the head of its body, and where it is left (by ``break`` or not)."""

    head: Live = NO_NAMES
    body: Live = NO_NAMES
    after: Live = NO_NAMES


class Liveness:
    """Liveness in one function; nested functions have their own."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.summaries = scope.summaries
        self.splits: dict[ast.AST, Split] = {}
        self.loops: dict[ast.AST, Around] = {}
        # Where a `try` statement's suites are left: behind it, and at its handlers' start.
        self.tries: dict[ast.AST, Live] = {}
        self._break: Live = NO_NAMES
        self._continue: Live = NO_NAMES
        self._return: Live = NO_NAMES
        self._raise: Live = NO_NAMES
        if not isinstance(scope.node, ast.Lambda):
            self.suite(scope.node.body, NO_NAMES)

    def suite(self, body: Sequence[ast.stmt], live: Live) -> Live:
        """What is live before some statements, given what is live after them."""
        for statement in reversed(body):
            live = self._statement(statement, live) | self._raise
        return live

    def _statement(self, node: ast.stmt, live: Live) -> Live:  # noqa: C901, PLR0911, PLR0912  one case for each kind of statement
        match node:
            case ast.If():
                then, orelse = self.suite(node.body, live), self.suite(node.orelse, live)
                self.splits.setdefault(node, Split()).grow(live, orelse)
                return self._expression(node.test, then | orelse)
            case ast.While() | ast.For() | ast.AsyncFor():
                return self._loop(node, live)
            case ast.Try() | ast.TryStar():
                return self._try(node, live)
            case ast.With() | ast.AsyncWith():
                return self._with(node, live)
            case ast.Match():
                return self._match(node, live)
            case ast.Break():
                return self._break
            case ast.Continue():
                return self._continue
            case ast.Return():
                return self._optional(node.value, self._return)
            case ast.Raise():
                return self._optional(node.exc, self._optional(node.cause, self._raise))
            case ast.Assign():
                return self._expression(node.value, self._targets(node.targets, live))
            case ast.AnnAssign() if node.value is not None:
                return self._expression(node.value, self._target(node.target, live))
            case ast.AugAssign():
                return self._expression(node.value, live | self._reads(node.target) | _plain(node.target))
            case ast.Expr():
                return self._expression(node.value, live)
            case ast.Assert():
                return self._expression(node.test, live | self._raise | self._reads(node.msg))
            case ast.Delete():
                return live | self.summaries.of(node).deletes | self._reads(node)
            case ast.Import() | ast.ImportFrom():
                return live - self.summaries.of(node).binds
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                # A function that calls itself reads its name when it has it.
                return (live - {node.name}) | (self._reads(node) - (self.scope.recursive & {node.name}))
        return live | self._reads(node)

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, live: Live) -> Live:
        exit_ = self.suite(node.orelse, live)
        saved = self._break, self._continue

        def before(body: Live) -> Live:
            """What is live at the head, given what is live before the body."""
            if isinstance(node, ast.While):
                return self._expression(node.test, body | exit_)
            return self._target(node.target, body) | exit_

        head = before(NO_NAMES)
        while True:
            self._break, self._continue = live, head
            body = self.suite(node.body, head)
            again = before(body) | head
            if again == head:
                break
            head = again
        self._break, self._continue = saved
        around = self.loops.setdefault(node, Around())
        around.head |= head
        around.body |= body
        around.after |= live | exit_
        self.splits.setdefault(node, Split()).grow(around.after, NO_NAMES)
        return head if isinstance(node, ast.While) else self._expression(node.iter, head)

    def _try(self, node: ast.Try | ast.TryStar, live: Live) -> Live:
        saved = self._break, self._continue, self._return, self._raise
        if node.finalbody:
            # However the suites are left, the finally suite runs next, and may go on to any of these places.
            live = self.suite(node.finalbody, live | self._break | self._continue | self._return | self._raise)
            self._break = self._continue = self._return = self._raise = live
        handlers = NO_NAMES
        for handler in node.handlers:
            entry = self.suite(handler.body, live)
            if handler.name is not None:
                entry -= {handler.name}
            handlers |= entry | self._reads(handler.type)
        end = self.suite(node.orelse, live)
        self.tries[node] = self.tries.get(node, NO_NAMES) | end | live | handlers
        self._raise |= handlers
        start = self.suite(node.body, end)
        self._break, self._continue, self._return, self._raise = saved
        return start | handlers

    def _with(self, node: ast.With | ast.AsyncWith, live: Live) -> Live:
        saved = self._raise
        self._raise |= live  # the context manager may swallow an exception
        start = self.suite(node.body, live)
        self._raise = saved
        for item in reversed(node.items):
            if item.optional_vars is not None:
                start = self._target(item.optional_vars, start) | live
            start = self._expression(item.context_expr, start)
        return start

    def _match(self, node: ast.Match, live: Live) -> Live:
        rest = live
        for case in reversed(node.cases):
            body = self.suite(case.body, live)
            self.splits.setdefault(case, Split()).grow(live, rest)
            pattern = self.summaries.of(case.pattern)
            guarded = body if case.guard is None else self._expression(case.guard, body | rest)
            rest |= (guarded - pattern.binds) | pattern.reads
        return self._expression(node.subject, rest)

    def _reads(self, node: ast.AST | None) -> Live:
        return NO_NAMES if node is None else frozenset(self.summaries.of(node).reads)

    def _optional(self, node: ast.expr | None, live: Live) -> Live:
        return live if node is None else self._expression(node, live)

    def _targets(self, targets: Sequence[ast.expr], live: Live) -> Live:
        for target in reversed(targets):
            live = self._target(target, live)
        return live

    def _target(self, node: ast.expr, live: Live) -> Live:
        if isinstance(node, ast.Name):
            return live - {node.id}
        if isinstance(node, ast.Tuple | ast.List):
            return self._targets(node.elts, live)
        if isinstance(node, ast.Starred):
            return self._target(node.value, live)
        return live | self._reads(node)

    def _expression(self, node: ast.expr, live: Live) -> Live:
        """Reads of an expression; only ``:=`` needs the order of evaluation."""
        names = self.summaries.of(node)
        if not names.walrus:
            return live | names.reads
        match node:
            case ast.NamedExpr():
                return self._expression(node.value, live - {node.target.id})
            case ast.BoolOp():
                for operand in reversed(node.values[1:]):
                    live |= self._expression(operand, live)
                return self._expression(node.values[0], live)
            case ast.IfExp():
                arms = self._expression(node.body, live) | self._expression(node.orelse, live)
                return self._expression(node.test, arms)
            case ast.Compare():
                for operand in reversed(node.comparators[1:]):
                    live |= self._expression(operand, live)
                return self._expression(node.left, self._expression(node.comparators[0], live))
            case (
                ast.UnaryOp() | ast.Attribute() | ast.Subscript() | ast.BinOp() | ast.Call() | ast.Tuple() | ast.List()
            ):
                parts = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr | ast.keyword)]
                for part in reversed(parts):
                    value = part.value if isinstance(part, ast.keyword) else part
                    live = self._expression(value, live)
                return live
        return live | names.reads


def _plain(node: ast.expr) -> Live:
    return frozenset({node.id}) if isinstance(node, ast.Name) else NO_NAMES
