"""What the passes need to know of a function, gathered before the first of them runs.

A pass decides *how* a construct is written; whether it is rewritten at all, and with which names, was decided before,
on the ``ast`` of the user's text. Facts are keyed by ``ast`` node, which a libcst node keeps through all passes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from dy2st.transforms.analysis.scope import FunctionNode


@dataclass(frozen=True)
class BranchFacts:
    """An ``if``: the names it changes, and which of its suites are left by jumps."""

    names: tuple[str, ...]
    then_jumps: bool
    orelse_jumps: bool


@dataclass(frozen=True)
class LoopFacts:
    """A loop: the names that its body changes, those that its ``for`` clause binds, and its else clause as a branch.

    ``yields`` says whether its body hands control to the consumer of a generator.
    """

    names: tuple[str, ...]
    targets: tuple[str, ...]
    jumps: bool
    orelse: BranchFacts | None
    yields: bool = False


@dataclass
class Facts:
    """Everything about one outermost function."""

    root: FunctionNode
    functions: set[ast.AST] = field(default_factory=set)
    framed: set[ast.AST] = field(default_factory=set)
    active: set[ast.AST] = field(default_factory=set)
    branches: dict[ast.AST, BranchFacts] = field(default_factory=dict)
    loops: dict[ast.AST, LoopFacts] = field(default_factory=dict)
    # The names that the suites of a `try` with handlers change; without those of which Python alone can take care.
    tries: dict[ast.AST, tuple[str, ...]] = field(default_factory=dict)
    frame_of: dict[ast.AST, ast.AST] = field(default_factory=dict)
    loop_of: dict[ast.AST, ast.AST] = field(default_factory=dict)
    yield_of: dict[ast.AST, ast.AST] = field(default_factory=dict)
    jumping: set[tuple[ast.AST, str]] = field(default_factory=set)
    conditions: set[ast.AST] = field(default_factory=set)
    native_tests: set[ast.AST] = field(default_factory=set)
    native_patterns: set[ast.AST] = field(default_factory=set)
    no_walrus: set[ast.AST] = field(default_factory=set)
    unsure: set[ast.AST] = field(default_factory=set)
    touched: dict[ast.AST, tuple[tuple[str, bool], ...]] = field(default_factory=dict)
    # Assignment expressions that bind a name which other functions may store to as well; whether it is a global.
    shared_walruses: dict[ast.AST, bool] = field(default_factory=dict)
    # Those in generator expressions, which are evaluated elsewhere than they stand.
    later_walruses: set[ast.AST] = field(default_factory=set)
    shadowed: frozenset[str] = frozenset()
    kinds: set[type[ast.AST]] = field(default_factory=set)


def stores_into_objects(target: ast.AST) -> bool:
    """Whether a target contains an attribute or an item."""
    return any(isinstance(n, ast.Attribute | ast.Subscript) for n in ast.walk(target))


def plain_pattern(pattern: ast.pattern) -> bool:
    """Whether a pattern is only compared with its subject, or takes all of it."""
    match pattern:
        case ast.MatchValue() | ast.MatchSingleton():
            return True
        case ast.MatchAs(pattern=None):
            return True
        case ast.MatchOr():
            return all(isinstance(p, ast.MatchValue | ast.MatchSingleton) for p in pattern.patterns)
    return False
