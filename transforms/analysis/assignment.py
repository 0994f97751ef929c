"""Definite assignment: which loads may find their variable without a value.

Forwards over one function. A state is a pair: the names that surely have a value, and those that may have one. A load
of a name that may, but need not, have one is *maybe unassigned*; one that surely has none fails as it always did.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dy2st.transforms.analysis.scope import COMPREHENSIONS, NO_NAMES, FunctionNode, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

Names = frozenset[str]


@dataclass(frozen=True)
class State:
    """Names with a value on all paths to a point, and on some."""

    surely: Names
    maybe: Names

    def bind(self, names: Names | set[str]) -> State:
        """After an assignment to ``names``."""
        return State(self.surely | names, self.maybe | names) if names else self

    def unbind(self, names: Names | set[str]) -> State:
        """After ``del``."""
        return State(self.surely - names, self.maybe - names) if names else self


def join(first: State | None, second: State | None) -> State | None:
    """Where two paths meet; None is a path that never gets there."""
    if first is None or second is None:
        return first or second
    return State(first.surely & second.surely, first.maybe | second.maybe)


class Assignment:
    """The loads of one function that may be unassigned."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.summaries = scope.summaries
        self.unsure: set[ast.Name] = set()
        self._interesting = scope.locals - scope.parameters | (scope.locals & frozenset(scope.names.deletes))
        self._breaks: list[State | None] = []
        if self._interesting and not isinstance(scope.node, ast.Lambda):
            self._suite(scope.node.body, State(scope.parameters, scope.parameters))

    def _suite(self, body: Sequence[ast.stmt], state: State | None) -> State | None:
        for statement in body:
            if state is None:
                return None
            state = self._statement(statement, state)
        return state

    def _loads(self, node: ast.AST | None, state: State) -> State:
        """Note the unsure loads of an expression, and bind its walruses."""
        if node is None:
            return state
        names = self.summaries.of(node)
        unsure = (names.reads & state.maybe & self._interesting) - state.surely
        if unsure and names.walrus:
            unsure -= names.binds
        if unsure:
            self._mark(node, unsure)
        return State(state.surely, state.maybe | names.binds) if names.walrus else state

    def _mark(self, node: ast.AST, unsure: set[str] | Names) -> None:
        if isinstance(node, ast.Name):
            if node.id in unsure and isinstance(node.ctx, ast.Load):
                self.unsure.add(node)
            return
        if isinstance(node, FunctionNode | ast.ClassDef):
            return
        if isinstance(node, COMPREHENSIONS):
            unsure = unsure & self.summaries.free(node)[0] | (unsure & self.summaries.of(node.generators[0].iter).reads)
            bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
            self._mark(node.generators[0].iter, unsure)
            unsure = unsure - bound
        for child in ast.iter_child_nodes(node):
            self._mark(child, unsure)

    def _statement(self, node: ast.stmt, state: State) -> State | None:  # noqa: C901, PLR0911  one case for each kind of statement
        match node:
            case ast.If():
                state = self._test(node.test, state)
                return join(self._suite(node.body, state), self._suite(node.orelse, state))
            case ast.While() | ast.For() | ast.AsyncFor():
                return self._loop(node, state)
            case ast.Try() | ast.TryStar():
                return self._try(node, state)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    state = self._loads(item.context_expr, state)
                    if item.optional_vars is not None:
                        state = self._loads(item.optional_vars, state)
                        state = state.bind(self.summaries.of(item.optional_vars).binds)
                return self._suite(node.body, state)
            case ast.Match():
                return self._match(node, state)
            case ast.Break():
                self._breaks[-1] = join(self._breaks[-1], state)
                return None
            case ast.Continue():
                return None
            case ast.Return():
                self._loads(node.value, state)
                return None
            case ast.Raise():
                self._loads(node.exc, state)
                self._loads(node.cause, state)
                return None
            case ast.Delete():
                self._loads(node, state)
                return state.unbind(self.summaries.of(node).deletes)
            case ast.AnnAssign(value=None):
                return state
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return state.bind({node.name})
        state = self._loads(node, state)
        return state.bind(self._sure_binds(node))

    def _sure_binds(self, node: ast.stmt) -> set[str]:
        names = self.summaries.of(node)
        if not names.walrus:
            return names.binds
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Expr):
            targets = [node.value]
        bound = {n.id for t in targets for n in _unconditional(t) if isinstance(n.ctx, ast.Store)}
        value = getattr(node, "value", None)
        return bound | ({n.id for n in _unconditional(value)} if isinstance(value, ast.NamedExpr) else set())

    def _test(self, node: ast.expr, state: State) -> State:
        state = self._loads(node, state)
        if self.summaries.of(node).walrus:
            first = node
            while isinstance(first, ast.BoolOp | ast.Compare | ast.UnaryOp):
                first = (
                    first.values[0]
                    if isinstance(first, ast.BoolOp)
                    else (first.left if isinstance(first, ast.Compare) else first.operand)
                )
            if isinstance(first, ast.NamedExpr):
                state = state.bind({first.target.id})
        return state

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, state: State) -> State | None:
        body = self.summaries.all(node.body)
        if isinstance(node, ast.While):
            head = State(state.surely - body.deletes, state.maybe | body.binds)
            head = self._test(node.test, head)
            start = head
            # `while True` is left by `break` only.
            exit_: State | None = None if isinstance(node.test, ast.Constant) and node.test.value else head
        else:
            state = self._loads(node.iter, state)
            head = State(state.surely - body.deletes, state.maybe | body.binds | self.summaries.of(node.target).binds)
            self._loads(node.target, head)
            start = head.bind(self.summaries.of(node.target).binds)
            exit_ = head
        self._breaks.append(None)
        self._suite(node.body, start)
        after = self._suite(node.orelse, exit_) if exit_ is not None else None
        end = join(after, self._breaks.pop())
        if end is None or exit_ is None or not node.orelse:
            return end
        # A staged loop has one end, before the `else` clause: what has no value there may be left without one on a path
        # that none of its inputs take.
        return State(end.surely & exit_.surely, end.maybe)

    def _try(self, node: ast.Try | ast.TryStar, state: State) -> State | None:
        body = self.summaries.all(node.body)
        end = self._suite(node.orelse, self._suite(node.body, state))
        broken = State(state.surely - body.deletes, state.maybe | body.binds)
        for handler in node.handlers:
            start = self._loads(handler.type, broken)
            caught = self._suite(handler.body, start.bind({handler.name}) if handler.name else start)
            if caught is not None and handler.name:
                caught = caught.unbind({handler.name})
            end = join(end, caught)
        if not node.finalbody:
            return end
        suites = self.summaries.all([*node.body, *node.handlers, *node.orelse])
        anywhere = State(state.surely - suites.deletes, state.maybe | suites.binds)
        self._suite(node.finalbody, anywhere)
        return self._suite(node.finalbody, end) if end is not None else None

    def _match(self, node: ast.Match, state: State) -> State | None:
        state = self._loads(node.subject, state)
        end: State | None = None
        for case in node.cases:
            self._loads(case.pattern, state)
            pattern = self.summaries.of(case.pattern).binds
            matched = state.bind(pattern)
            matched = self._loads(case.guard, matched)
            end = join(end, self._suite(case.body, matched))
            state = State(state.surely, state.maybe | pattern)
            if case.guard is None and _irrefutable(case.pattern):
                return end
        return join(end, state)


def _unconditional(node: ast.AST) -> list[ast.Name]:
    """The names bound by a target, or by walruses directly around a value."""
    found: list[ast.Name] = []
    while isinstance(node, ast.NamedExpr):
        found.append(node.target)
        node = node.value
    if isinstance(node, ast.Name):
        found.append(node)
    elif isinstance(node, ast.Tuple | ast.List):
        for item in node.elts:
            found += _unconditional(item)
    elif isinstance(node, ast.Starred):
        found += _unconditional(node.value)
    return [n for n in found if isinstance(n.ctx, ast.Store)]


def _irrefutable(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and (pattern.pattern is None or _irrefutable(pattern.pattern))


__all__ = ["NO_NAMES", "Assignment", "State", "join"]
