"""Which patterns are compared with ``==`` outside the native ``match`` that looks at their structure."""

from __future__ import annotations

import ast


def compares_only(pattern: ast.pattern) -> bool:
    """Whether a pattern does nothing but compare: a value or singleton, or alternatives with one among them."""
    if isinstance(pattern, ast.MatchOr):
        simple = all(isinstance(p, ast.MatchValue | ast.MatchSingleton) or _wildcard(p) for p in pattern.patterns)
        return simple and not all(map(_wildcard, pattern.patterns))
    return isinstance(pattern, ast.MatchValue | ast.MatchSingleton)


def compared(pattern: ast.pattern) -> bool:
    """Whether any comparison in a pattern can be taken out of it."""
    match pattern:
        case ast.MatchAs():
            return pattern.pattern is not None and compared(pattern.pattern)
        case ast.MatchSequence() | ast.MatchMapping() | ast.MatchClass():
            return any(map(compared, parts(pattern))) and not whole(pattern)
    return compares_only(pattern)


def alternatives(pattern: ast.pattern) -> bool:
    """Whether a pattern's alternatives are to be tried one by one: there are comparisons in them, and no names."""
    if not isinstance(pattern, ast.MatchOr):
        return False
    inside = list(ast.walk(pattern))
    names = any(isinstance(n, ast.MatchAs | ast.MatchStar) and n.name is not None for n in inside)
    rests = any(isinstance(n, ast.MatchMapping) and n.rest is not None for n in inside)
    return not compares_only(pattern) and not names and not rests and any(map(compared, pattern.patterns))


def parts(pattern: ast.pattern) -> list[ast.pattern]:
    """The patterns directly inside one that has structure, in the order of their evaluation."""
    match pattern:
        case ast.MatchSequence() | ast.MatchMapping():
            return pattern.patterns
        case ast.MatchClass():
            return [*pattern.patterns, *pattern.kwd_patterns]
    return []


def whole(pattern: ast.pattern) -> bool:
    """Whether a pattern can't be matched level by level.

    Python asks a subject for all that a level needs before it looks at any part, but for the copy that ``**rest``
    makes, and for sequences with ``*_``, which it asks item by item.
    """
    if isinstance(pattern, ast.MatchMapping):
        return pattern.rest is not None and any(map(_postponed, pattern.patterns))
    if isinstance(pattern, ast.MatchSequence) and any(_wild_star(p) for p in pattern.patterns):
        loaded = [p for p in pattern.patterns if not _wild_star(p) and not _wildcard(p)]
        return any(map(_postponed, loaded[:-1]))
    return isinstance(pattern, ast.MatchOr)


def _postponed(pattern: ast.pattern) -> bool:
    """Whether anything in a part of a pattern is looked at apart: comparisons, and classes (which run user code)."""
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is not None and _postponed(pattern.pattern)
    return isinstance(pattern, ast.MatchClass) or compares_only(pattern) or any(map(_postponed, parts(pattern)))


def _wildcard(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.name is None


def _wild_star(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchStar) and pattern.name is None
