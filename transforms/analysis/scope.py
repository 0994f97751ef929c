"""Names of a function: what each statement reads and binds, what nested scopes capture.

Python decides scopes per function, not per block, so one summary for each statement (its nested suites included) is
all that liveness and definite assignment need. Comprehensions run in place, and so count as plain reads; a generator
expression, a lambda or a nested function runs later, so what it reads is *captured*.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPE_CALLS = frozenset({"locals", "vars", "dir"})
NO_NAMES: frozenset[str] = frozenset()


@dataclass
class Names:
    """What a piece of code does with the names of the function that it stands in."""

    reads: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    deletes: set[str] = field(default_factory=set)
    captured: set[str] = field(default_factory=set)
    rebound: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    calls: bool = False
    walrus: bool = False
    scope_calls: bool = False
    executes: bool = False
    yields: bool = False

    def add(self, other: Names) -> None:
        """Take in what ``other`` does."""
        for name, found in vars(other).items():
            setattr(self, name, getattr(self, name) | found)


class Summaries:
    """Summaries of statements and expressions, each computed once."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, Names] = {}
        self._free: dict[ast.AST, tuple[frozenset[str], frozenset[str]]] = {}

    def of(self, node: ast.AST) -> Names:
        """What ``node``, its nested suites included, does."""
        known = self._known.get(node)
        if known is None:
            known = Names()
            if isinstance(node, ast.stmt):
                self._statement(node, known)
            else:
                self._collect(node, known)
            self._known[node] = known
        return known

    def all(self, nodes: Iterable[ast.AST]) -> Names:
        """What several nodes do together."""
        total = Names()
        for node in nodes:
            total.add(self.of(node))
        return total

    def _statement(self, node: ast.stmt, names: Names) -> None:
        # Suites are summed from their statements' own summaries, which the dataflow asks for too.
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._collect(node, names)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                names.add(self.of(child))
            else:
                self._collect(child, names)
        self._own(node, names)

    def _own(self, node: ast.AST, names: Names) -> None:  # noqa: C901, PLR0912  one case for each kind of node
        """The names that ``node`` itself binds, its children apart."""
        match node:
            case ast.Name(id=name, ctx=ctx):
                if isinstance(ctx, ast.Load):
                    names.reads.add(name)
                else:
                    names.binds.add(name)
                    if isinstance(ctx, ast.Del):
                        names.deletes.add(name)
            case ast.AugAssign(target=ast.Name(id=name)):
                names.reads.add(name)
            case ast.ExceptHandler(name=str(name)):
                names.binds.add(name)
                names.deletes.add(name)
            case ast.Import() | ast.ImportFrom():
                names.binds.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.binds.add(name)
            case ast.Global():
                names.globals.update(node.names)
            case ast.Nonlocal():
                names.nonlocals.update(node.names)
            case ast.Call():
                names.calls = True
                if isinstance(node.func, ast.Name):
                    names.executes = names.executes or node.func.id in {"eval", "exec"}
                    if node.func.id in SCOPE_CALLS and not node.args and not node.keywords:
                        names.scope_calls = True
            case ast.NamedExpr():
                names.walrus = True
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                names.yields = True

    def _collect(self, node: ast.AST, names: Names) -> None:
        stack = [node]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                self._own(node, names)
            elif kind in _SCOPES:
                stack.extend(self._nested(node, names))
            elif kind not in _LEAVES:
                self._own(node, names)
                stack.extend(ast.iter_child_nodes(node))

    def _nested(self, node: ast.AST, names: Names) -> list[ast.AST]:
        """Take in a nested scope; the parts of it that are evaluated outside are returned."""
        free, rebound = self.free(node)
        names.rebound |= rebound
        names.reads |= free
        outside: list[ast.AST] = []
        if isinstance(node, FunctionNode):
            names.captured |= free
            outside = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
            if not isinstance(node, ast.Lambda):
                names.binds.add(node.name)
                outside += node.decorator_list
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                arguments += [a for a in (node.args.vararg, node.args.kwarg) if a is not None]
                outside += [a.annotation for a in arguments if a.annotation is not None]
                if node.returns is not None:
                    outside.append(node.returns)
        elif isinstance(node, ast.ClassDef):
            names.captured |= free
            names.binds.add(node.name)
            names.calls = True
            outside = [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
        elif isinstance(node, COMPREHENSIONS):
            if isinstance(node, ast.GeneratorExp):
                names.captured |= free
            names.calls = True
            walrus = {each.target.id for each in walruses(node)}
            names.binds |= walrus
            # It binds them in a frame of its own: that of a generator expression runs wherever its consumer asks for
            # an element.
            names.rebound |= walrus
            if isinstance(node, ast.GeneratorExp):
                names.captured |= walrus
            inner = self._inner(node)
            names.captured |= inner.captured & free
            names.executes = names.executes or inner.executes
            names.scope_calls = names.scope_calls or inner.scope_calls
            outside = [node.generators[0].iter]
        return outside

    def free(self, node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
        """The names that a nested scope takes from outside, and those of them that it rebinds."""
        known = self._free.get(node)
        if known is None:
            known = self._free[node] = self._free_names(node)
        return known

    def _inner(self, node: ast.AST) -> Names:
        inner = Names()
        if isinstance(node, COMPREHENSIONS):
            parts: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            for i, clause in enumerate(node.generators):
                parts += [clause.target, *clause.ifs] + ([clause.iter] if i else [])
            for part in parts:
                self._collect(part, inner)
        elif isinstance(node, ast.Lambda):
            self._collect(node.body, inner)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for statement in node.body:
                inner.add(self.of(statement))
        return inner

    def _free_names(self, node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
        inner = self._inner(node)
        bound = set(inner.binds)
        if isinstance(node, FunctionNode):
            bound.update(parameters(node))
        if isinstance(node, COMPREHENSIONS):
            # A walrus binds in the function around the comprehension.
            bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        if isinstance(node, ast.ClassDef):
            # A class body may read a name from outside before (or without) binding it, and its methods don't see it.
            bound = set()
        bound -= inner.nonlocals
        free = (inner.reads | inner.nonlocals | (inner.rebound - bound)) - bound - inner.globals
        rebound = (inner.nonlocals & inner.binds) | (inner.rebound - bound)
        return frozenset(free), frozenset(rebound)


def walruses(expression: ast.AST) -> list[ast.NamedExpr]:
    """The assignment expressions in an expression, lambdas apart."""
    found: list[ast.NamedExpr] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.NamedExpr):
            found.append(node)
        stack.extend(ast.iter_child_nodes(node))
    return found


def _of_one_scope(body: Sequence[ast.AST]) -> list[ast.AST]:
    """All nodes that are evaluated in one function: nested functions and classes themselves, but not their bodies."""
    found: list[ast.AST] = []
    stack = list(body)
    while stack:
        current = stack.pop()
        found.append(current)
        match current:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                stack += [*current.args.defaults, *(d for d in current.args.kw_defaults if d is not None)]
                stack += [] if isinstance(current, ast.Lambda) else current.decorator_list
            case ast.ClassDef():
                stack += [*current.decorator_list, *current.bases, *(k.value for k in current.keywords)]
            case _:
                stack += ast.iter_child_nodes(current)
    return found


def bound_by(node: ast.AST) -> list[str]:
    """The names that a node binds by itself."""
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            return [node.id]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() if node.name is not None:
            return [node.name]
        case ast.MatchMapping() if node.rest is not None:
            return [node.rest]
    return []


def identifiers(root: ast.AST) -> set[str]:
    """Every identifier in a piece of code, attributes apart."""
    found: set[str] = set()
    for node in ast.walk(root):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                found.add(name)
            case ast.Global() | ast.Nonlocal():
                found.update(node.names)
            case _:
                found.update(bound_by(node))
    return found


def parameters(node: FunctionNode) -> list[str]:
    """The names of a function's parameters."""
    args = node.args
    found = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return found + [a.arg for a in (args.vararg, args.kwarg) if a is not None]


_SCOPES = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *COMPREHENSIONS)
_LEAVES = frozenset({ast.Load, ast.Store, ast.Del, ast.Constant, ast.Pass, ast.Break, ast.Continue})


class Scope:
    """One function: its own names, and those that live on after any statement."""

    def __init__(self, node: FunctionNode, summaries: Summaries) -> None:
        self.node = node
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        self.summaries = summaries
        self.names = summaries.all(body)
        self.parameters = frozenset(parameters(node))
        self.outer = frozenset(self.names.globals | self.names.nonlocals)
        self.locals = frozenset((self.names.binds | self.parameters) - self.outer)
        self.rebound = frozenset(self.names.rebound & (self.locals | self.names.nonlocals))
        # What other functions may store to as well: each store is announced, and none is a matter of this frame alone.
        self.shared = self.outer | self.rebound
        self.recursive = self._recursive(body)
        escaping = (self.names.captured - self.recursive) | self.outer
        self.always_live = self.locals | self.outer if self.names.scope_calls else frozenset(escaping)

    def _recursive(self, body: Sequence[ast.AST]) -> frozenset[str]:
        """Functions defined here that nothing but themselves refers to from inside another scope."""
        nodes = _of_one_scope(body)
        bound: Counter[str] = Counter(self.parameters)
        captured: Counter[str] = Counter()
        for node in nodes:
            bound.update(bound_by(node))
            if isinstance(node, FunctionNode | ast.ClassDef | ast.GeneratorExp):
                captured.update(self.summaries.free(node)[0])
        defined = {n.name for n in nodes if isinstance(n, ast.FunctionDef) and n.name in self.summaries.free(n)[0]}
        return frozenset(n for n in defined - self.outer - self.rebound if bound[n] == 1 and captured[n] == 1)

    def binds(self, nodes: Iterable[ast.AST]) -> frozenset[str]:
        """The names that some statements may bind, through calls of nested functions too."""
        total = self.summaries.all(nodes)
        return frozenset(total.binds | self.rebound if total.calls else total.binds)
