"""Whether a context manager may swallow an exception, by what its code says.

What may be swallowed is no failure of the model, so that no guard of a graph stands for it. Most managers only tidy up:
their ``__exit__`` returns nothing, or their generator has a ``try`` with ``finally`` alone.
"""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Iterator
from typing import Any

from dy2st.errors import Dy2stError
from dy2st.source.find import find
from dy2st.source.rewriting import original


def may_swallow(manager: Any) -> bool:
    """Whether ``manager`` may end an exception that leaves its block; True where its code can't be read."""
    if isinstance(manager, contextlib._GeneratorContextManager):
        body = _body(getattr(manager, "func", None))
        return body is None or any(_catches(node) for node in _own_nodes(body))
    body = _body(getattr(type(manager), "__exit__", None))
    return body is None or any(isinstance(node, ast.Return) and not _is_false(node.value) for node in _own_nodes(body))


def _body(function: Any) -> list[ast.stmt] | None:
    if not isinstance(function, types.FunctionType):
        return None
    try:
        (found, *others) = find(original(function))
    except (Dy2stError, ValueError):
        return None
    return None if others or isinstance(found.node, ast.Lambda) else found.node.body


def _catches(node: ast.AST) -> bool:
    """Whether a statement around a ``yield`` may catch what is thrown in there: one inside of it may be any manager."""
    if isinstance(node, ast.Try):
        return bool(node.handlers) or any(isinstance(each, ast.Return) for each in _own_nodes(node.finalbody))
    return isinstance(node, (ast.With, ast.AsyncWith, ast.TryStar))


def _own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, but for functions and classes that are defined there."""
    left: list[ast.AST] = list(body)
    while left:
        node = left.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield node
            left += ast.iter_child_nodes(node)


def _is_false(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and not value.value)
