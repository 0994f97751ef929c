"""Gathers the facts of a function: one walk over its statements and expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dy2st.transforms.analysis.assignment import Assignment
from dy2st.transforms.analysis.facts import BranchFacts, Facts, LoopFacts, plain_pattern, stores_into_objects
from dy2st.transforms.analysis.jumps import Jumps
from dy2st.transforms.analysis.liveness import Around, Liveness, Split
from dy2st.transforms.analysis.patterns import alternatives, compared
from dy2st.transforms.analysis.python_tests import python_only
from dy2st.transforms.analysis.scope import FunctionNode, Names, Scope, Summaries, bound_by
from dy2st.transforms.names import GENERATED

Suite = Sequence[ast.AST]
# CPython compiles no more than 20 nested loops, `with` and `try` in a function, and reads no more than 100 indents.
NO_LIMIT = 1_000_000


class Analysis:
    """Collects the facts of a function and of the functions in it."""

    def __init__(self, root: FunctionNode, deepest: int = NO_LIMIT) -> None:
        self.facts = Facts(root)
        self.deepest = deepest
        self.summaries = Summaries()
        self.jumps = Jumps()
        self.facts.shadowed = frozenset(_bound_anywhere(root))
        self._depth = 0
        self._loops: list[ast.AST] = []
        self._running: ast.AST = root
        self._scope: Scope | None = None
        # Each `if` that is an `elif`.
        self._clauses: set[ast.AST] = set()
        self._function(root)
        self.facts.kinds = {type(node) for node in self.facts.active}

    # -- functions ---------------------------------------------------------------------------------------------------

    def _function(self, node: ast.AST, *, walrus: bool = True) -> None:
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            return
        scope = Scope(node, self.summaries)
        if not convertible(scope):
            return
        facts = self.facts
        facts.functions.add(node)
        facts.active.add(node)
        saved = self._depth, self._loops, self._running, self._scope
        self._depth, self._loops, self._running, self._scope = 0, [], node, scope
        if isinstance(node, ast.Lambda):
            # A lambda in the iterable of a comprehension may not contain `:=` either.
            self._expression(node.body, walrus=walrus)
        else:
            liveness = Liveness(scope)
            facts.unsure |= Assignment(scope).unsure
            if any(self.jumps.of(s)[0] for s in node.body if not isinstance(s, ast.Return | ast.Raise)):
                facts.framed.add(node)
            self._suite(node.body, _Frame(node, scope, liveness))
        self._depth, self._loops, self._running, self._scope = saved

    def _suite(self, body: Iterable[ast.AST], frame: _Frame) -> None:
        for statement in body:
            self._statement(statement, frame)

    def _nested(self, body: Iterable[ast.AST], frame: _Frame) -> None:
        self._depth += 1
        self._suite(body, frame)
        self._depth -= 1

    # -- statements --------------------------------------------------------------------------------------------------

    def _statement(self, node: ast.AST, frame: _Frame) -> None:  # noqa: C901, PLR0912  one case for each kind of statement
        facts = self.facts
        facts.active.add(node)
        self._touch(node, frame)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for default in (*node.args.defaults, *node.args.kw_defaults):
                    self._optional(default)
                self._function(node)
            case ast.ClassDef():
                self._class_body(node.body)
            case ast.If():
                self._branch(node, frame)
            case ast.While() | ast.For() | ast.AsyncFor():
                self._loop(node, frame)
            case ast.Match():
                self._match(node, frame)
            case ast.Try() | ast.TryStar():
                self._try(node, frame)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._expression(item.context_expr, walrus=True)
                    self._optional(item.optional_vars)
                if self.jumps.leave(node.body):
                    facts.jumping.add((node, "body"))
                self._suite(node.body, frame)
            case ast.Return() | ast.Raise():
                if frame.node in facts.framed:
                    facts.frame_of[node] = frame.node
                for child in ast.iter_child_nodes(node):
                    self._expression(child, walrus=True)
            case ast.Break() | ast.Continue():
                if self._loops[-1] in facts.loops:
                    facts.loop_of[node] = self._loops[-1]
            case ast.Assert():
                self._test(node.test)
                self._optional(node.msg)
            case ast.AnnAssign():
                if node.value is not None:
                    self._expression(node.target, walrus=True)
                    self._expression(node.value, walrus=True)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._expression(child, walrus=True)

    def _touch(self, node: ast.AST, frame: _Frame) -> None:
        if not frame.scope.shared or isinstance(node, ast.Global | ast.Nonlocal):
            return
        # No statement can precede what is looked at only if the clauses before it don't hold.
        late = [case.guard for case in node.cases] if isinstance(node, ast.Match) else []
        late += [node.test] if isinstance(node, ast.If) and node in self._clauses else []
        for test in filter(None, late):
            self.facts.later_walruses.update(n for n in ast.walk(test) if isinstance(n, ast.NamedExpr))
        own = Names()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ExceptHandler) and child.name:
                own.binds.add(child.name)
            # A case or a handler has statements of its own, which are announced where they stand.
            parts = ast.iter_child_nodes(child) if isinstance(child, ast.ExceptHandler | ast.match_case) else (child,)
            for part in parts:
                if not isinstance(part, ast.stmt) and part not in late:
                    own.add(self.summaries.of(part))
        if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own = self.summaries.of(node)
        stores = sorted(own.binds & frame.scope.shared)
        if stores:
            self.facts.touched[node] = tuple((name, name in frame.scope.names.globals) for name in stores)

    def _branch(self, node: ast.If, frame: _Frame) -> None:
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            self._clauses.add(node.orelse[0])
        if python_only(node.test, self.facts.shadowed):
            self._test(node.test)
            self._suite(node.body, frame)
            self._suite(node.orelse, frame)
            return
        if self._depth >= self.deepest:
            self._native_test(node.test)
        else:
            split = frame.liveness.splits.get(node) or Split()
            self.facts.branches[node] = self._branch_facts(frame, node.body, node.orelse, split, frame.scope.shared)
        self._test(node.test)
        self._nested(node.body, frame)
        self._nested(node.orelse, frame)

    def _branch_facts(
        self, frame: _Frame, then: Suite, orelse: Suite, split: Split, shared: frozenset[str] = frozenset()
    ) -> BranchFacts:
        always = frame.scope.always_live
        bound_then, bound_else = frame.scope.binds(then) - shared, frame.scope.binds(orelse) - shared
        live = (bound_then | bound_else) & (split.after | always)
        names = live | (bound_then & (split.orelse | always) if orelse else frozenset())
        return BranchFacts(tuple(sorted(names)), self.jumps.leave(then), self.jumps.leave(orelse))

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, frame: _Frame) -> None:
        facts = self.facts
        if isinstance(node, ast.While):
            self._test(node.test)
        else:
            self._expression(node.iter, walrus=True)
            self._expression(node.target, walrus=True)
        if self._depth >= self.deepest or isinstance(node, ast.AsyncFor):
            if isinstance(node, ast.While):
                self._native_test(node.test)
        else:
            facts.loops[node] = self._loop_facts(node, frame)
        self._loops.append(node)
        self._nested(node.body, frame)
        self._loops.pop()
        self._nested(node.orelse, frame)

    def _loop_facts(self, node: ast.While | ast.For, frame: _Frame) -> LoopFacts:
        around, always = frame.liveness.loops.get(node) or Around(), frame.scope.always_live
        head, after = around.head | always, around.after | always
        bound = set(frame.scope.binds([*node.body, node.test] if isinstance(node, ast.While) else node.body))
        targets: set[str] = set()
        if isinstance(node, ast.For):
            plain = self.summaries.of(node.target).binds
            if stores_into_objects(node.target):
                bound |= plain
            else:
                targets = plain & after
                bound -= plain
        orelse = None
        if node.orelse:
            orelse = self._branch_facts(frame, node.orelse, (), Split(after), frame.scope.shared)
        # The header runs in each iteration, and is announced once.
        header = self.summaries.of(node.test if isinstance(node, ast.While) else node.target).binds
        bound -= frame.scope.shared - header
        # What the test of a ``while`` binds is of the iteration that it begins.
        begun = around.body & header if isinstance(node, ast.While) else frozenset()
        names = tuple(sorted(bound & (head | after | begun)))
        yields = any(self.summaries.of(statement).yields for statement in node.body)
        return LoopFacts(names, tuple(sorted(targets)), self.jumps.leave(node.body), orelse, yields)

    def _match(self, node: ast.Match, frame: _Frame) -> None:
        self._expression(node.subject, walrus=True)
        # What only looks at structure is Python's business.
        decided = all(plain_pattern(c.pattern) for c in node.cases) or any(
            c.guard is not None or compared(c.pattern) or alternatives(c.pattern) for c in node.cases
        )
        staged = self._depth + len(node.cases) <= self.deepest and decided
        for i, case in enumerate(node.cases):
            self.facts.active.add(case)
            rest = node.cases[i + 1 :]
            if staged:
                self._depth += 1
                split = frame.liveness.splits.get(case) or Split()
                # Captures are bound in the suite if comparisons decide whether there are any.
                apart = compared(case.pattern)
                then: Suite = [case.pattern, *case.body] if apart else case.body
                self.facts.branches[case] = self._branch_facts(frame, then, rest, split)
                captures = self.summaries.of(case.pattern).binds
                if apart and case.guard is not None and captures & (split.orelse | frame.scope.always_live):
                    self.facts.native_patterns.add(case)
            if case.guard is not None:
                self._test(case.guard)
                if not staged:
                    self._native_test(case.guard)
            self._suite(case.body, frame)
        self._depth -= len(node.cases) if staged else 0

    def _try(self, node: ast.Try | ast.TryStar, frame: _Frame) -> None:
        if node.finalbody or node.handlers:
            for name in ("body", "orelse"):
                if self.jumps.leave(getattr(node, name)):
                    self.facts.jumping.add((node, name))
        if isinstance(node, ast.Try) and node.handlers and not node.finalbody:
            bound = frame.scope.binds([*node.body, *node.orelse, *(s for h in node.handlers for s in h.body)])
            bound -= frame.scope.shared | {h.name for h in node.handlers}
            live = frame.liveness.tries.get(node, frozenset()) | frame.scope.always_live
            self.facts.tries[node] = tuple(sorted(bound & live))
        self._suite(node.body, frame)
        for handler in node.handlers:
            self.facts.active.add(handler)
            if self.jumps.leave(handler.body):
                self.facts.jumping.add((handler, "body"))
            self._optional(handler.type)
            self._suite(handler.body, frame)
        self._suite(node.orelse, frame)
        self._suite(node.finalbody, frame)

    def _class_body(self, body: Iterable[ast.AST]) -> None:
        """A class body stays native: only its tests are watched, and the functions in it are rewritten."""
        for statement in body:
            if isinstance(statement, ast.FunctionDef):
                self._function(statement)
            elif isinstance(statement, ast.ClassDef):
                self._class_body(statement.body)
            elif not isinstance(statement, ast.AsyncFunctionDef):
                if isinstance(statement, ast.If | ast.While):
                    self._native_test(statement.test)
                for child in ast.iter_child_nodes(statement):
                    if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                        self._class_body([child])
                    else:
                        self._native_lambdas(child)

    def _native_lambdas(self, node: ast.AST) -> None:
        if isinstance(node, ast.Lambda):
            self._function(node)
        else:
            for child in ast.iter_child_nodes(node):
                self._native_lambdas(child)

    # -- expressions -------------------------------------------------------------------------------------------------

    def _optional(self, node: ast.expr | None, *, walrus: bool = True) -> None:
        if node is not None:
            self._expression(node, walrus=walrus)

    def _native_test(self, node: ast.expr) -> None:
        if not python_only(node, self.facts.shadowed):
            self.facts.native_tests.add(node)

    def _test(self, node: ast.expr, *, walrus: bool = True) -> None:
        self.facts.conditions.add(node)
        self._expression(node, walrus=walrus)

    def _expression(self, node: ast.AST, *, walrus: bool) -> None:  # noqa: C901, PLR0912  one case for each kind of expression
        facts = self.facts
        facts.active.add(node)
        match node:
            case ast.Name() | ast.Constant():
                return
            case ast.Yield() | ast.YieldFrom():
                facts.yield_of[node] = self._running
                self._optional(node.value, walrus=walrus)
            case ast.Lambda():
                for default in (*node.args.defaults, *node.args.kw_defaults):
                    self._optional(default, walrus=walrus)
                self._function(node, walrus=walrus)
            case ast.BoolOp():
                last = node.values[-1]
                for value in node.values:
                    if node in facts.conditions:
                        facts.conditions.add(value)
                    if not walrus and value is not last:
                        self._native_test(value)
                    self._expression(value, walrus=walrus)
            case ast.NamedExpr():
                if self._scope is not None and node.target.id in self._scope.shared:
                    facts.shared_walruses[node] = node.target.id in self._scope.names.globals
                for part in (node.target, node.value):
                    self._expression(part, walrus=walrus)
            case ast.UnaryOp(op=ast.Not()):
                self._test(node.operand, walrus=walrus)
            case ast.IfExp():
                self._test(node.test, walrus=walrus)
                if not walrus:
                    self._native_test(node.test)
                for arm in (node.body, node.orelse):
                    if node in facts.conditions:
                        facts.conditions.add(arm)
                    self._expression(arm, walrus=walrus)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                facts.later_walruses.update(n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
                for clause in node.generators:
                    facts.active.add(clause)
                    self._expression(clause.iter, walrus=False)
                    self._expression(clause.target, walrus=walrus)
                    for test in clause.ifs:
                        self._native_test(test)
                        self._test(test, walrus=walrus)
                for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                    self._expression(part, walrus=walrus)
            case _:
                for child in ast.iter_child_nodes(node):
                    if not isinstance(child, ast.expr_context | ast.operator | ast.cmpop | ast.unaryop | ast.boolop):
                        self._expression(child, walrus=walrus)
        if not walrus and isinstance(node, ast.BoolOp | ast.IfExp | ast.Compare):
            facts.no_walrus.add(node)


@dataclass(frozen=True)
class _Frame:
    node: ast.AST
    scope: Scope
    liveness: Liveness


def convertible(scope: Scope) -> bool:
    """Coroutines, lambdas that yield and functions that execute text are left alone.

    So are functions that ask for their own names, if one of these looks like those that passes make.
    """
    names = scope.names
    if names.executes or isinstance(scope.node, ast.AsyncFunctionDef):
        return False
    if names.yields and isinstance(scope.node, ast.Lambda):
        return False
    return not (names.scope_calls and any(GENERATED.match(n) for n in scope.locals | names.reads))


def _bound_anywhere(root: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(root):
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif node is not root:
            found.update(bound_by(node))
    return found
