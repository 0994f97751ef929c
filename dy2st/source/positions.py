"""Positions: the rewritten tree gets those of the user's text, so that tracebacks show what the user wrote."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from dy2st.transforms.pairing import children

if TYPE_CHECKING:
    import libcst as cst

    from dy2st.transforms import Unit

Span = tuple[int, int, int | None, int | None]


def restore(unit: Unit, tree: ast.AST) -> None:
    """Give every node of ``tree``, parsed from the unit's new text, its place in the user's text."""
    placed: dict[ast.AST, ast.AST] = {}
    copied: set[ast.AST] = set()
    stack: list[tuple[cst.CSTNode, ast.AST]] = [(unit.node, tree)]
    while stack:
        node, new = stack.pop()
        place = unit.place(node)
        if place is not None and node in unit.untouched:
            _copy(place, new)
            copied.add(new)
            continue
        if place is not None:
            placed[new] = place
        stack.extend(children(node, new))
    _fill(tree, (1, 1, 0, 0), placed, copied)


def _copy(source: ast.AST, target: ast.AST) -> None:
    """An untouched subtree: both trees have the same shape."""
    stack = [(source, target)]
    while stack:
        old, new = stack.pop()
        if hasattr(old, "lineno"):
            _set(new, _span(old))
        stack.extend(zip(ast.iter_child_nodes(old), ast.iter_child_nodes(new), strict=True))


def _span(node: ast.AST) -> Span | None:
    if isinstance(node, ast.match_case):
        return _span(node.pattern)
    if not hasattr(node, "lineno"):
        return None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset  # type: ignore[attr-defined]


def _call_span(new: ast.Call, origin: ast.AST, span: Span) -> Span:
    """The compiler gives a call of a method the line of the method's name; our callee is no attribute any more."""
    if not isinstance(origin, ast.Call) or not isinstance(origin.func, ast.Attribute) or new.func is origin.func:
        return span
    if isinstance(new.func, ast.Attribute):
        return span
    plain = not any(isinstance(a, ast.Starred) for a in origin.args) and all(k.arg for k in origin.keywords)
    func = origin.func
    if not plain or func.end_lineno is None or func.end_col_offset is None or func.end_lineno == origin.lineno:
        return span
    start = func.end_col_offset - len(func.attr.encode())
    end_line = max(func.end_lineno, origin.end_lineno or 0)
    return func.end_lineno, end_line, start, origin.end_col_offset


def _assert_span(origin: ast.AST, span: Span) -> Span:
    """Python 3.11 raises AssertionError at the last comparison that it jumped on; our test is no comparison."""
    if sys.version_info >= (3, 12) or not isinstance(origin, ast.Assert):
        return span
    comparison = _last_comparison(origin.test)
    return span if comparison is None else _span(comparison) or span


def _last_comparison(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Compare():
            return node
        case ast.UnaryOp(op=ast.Not()):
            return _last_comparison(node.operand)
        case ast.BoolOp():
            parts = node.values
        case ast.IfExp():
            parts = [node.test, node.body, node.orelse]
        case _:
            return None
    found = [c for c in map(_last_comparison, parts) if c is not None]
    return found[-1] if found else None


def _set(node: ast.AST, span: Span | None) -> None:
    if span is not None:
        node.lineno, node.end_lineno, node.col_offset, node.end_col_offset = span  # type: ignore[attr-defined]


def _fill(node: ast.AST, inherited: Span, placed: dict[ast.AST, ast.AST], copied: set[ast.AST]) -> None:
    stack = [(node, inherited)]
    while stack:
        node, span = stack.pop()
        if node in copied:
            continue
        origin = placed.get(node)
        own = span
        if origin is None and isinstance(node, ast.Attribute):
            # `d2s.if_`: were it to span lines, the compiler would take its call for one on the last of them.
            own = span[0], span[0], span[2], span[2]
        elif origin is not None:
            own = span = _span(origin) or span
            if isinstance(node, ast.Call):
                own = _call_span(node, origin, span)
            elif isinstance(node, ast.Assert):
                own = _assert_span(origin, span)
        if hasattr(node, "lineno"):
            _set(node, own)
        stack.extend((child, span) for child in ast.iter_child_nodes(node))
