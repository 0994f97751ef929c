"""Where calls of a kind stand in the user's text: what their results are for can be told by nothing else."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator

from dy2st.errors import Location

# The first line and column, and those after the end.
Place = tuple[int, int, int, int]


def in_constant(here: Location) -> bool:
    """Whether a place is inside of a call of ``dy2st.constant``, its arguments among it."""
    at = here.line, here.column or 0
    return any(place[:2] <= at < place[2:] for place in _places(here.filename)[0])


def is_entered(here: Location) -> bool:
    """Whether the call at a place is that of a manager which a ``with`` statement enters."""
    return any((here.line, here.column) == place[:2] for place in _places(here.filename)[1])


@functools.lru_cache(maxsize=64)
def _places(filename: str) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """Of the calls of ``constant`` in a file, and of the calls in ``with`` statements."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return (), ()
    return tuple(map(_place, _constants(tree))), tuple(map(_place, _managers(tree)))


def _constants(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "constant":
            yield node


def _managers(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            yield from (item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call))


def _place(node: ast.expr) -> Place:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0
