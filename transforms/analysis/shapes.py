"""What reads like the sizes of a tensor: Python compares and joins them one by one, and each may be data-dependent."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_LISTING = frozenset(("list", "tuple", "Size"))


def reads_like_a_shape(side: ast.expr, names: frozenset[str] = frozenset()) -> bool:
    """``x.shape``, ``x.size()``, a slice of one, a list or tuple of something, one of ``names``, or a tuple display."""
    match side:
        case ast.Tuple() | ast.ListComp() | ast.Attribute(attr="shape"):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[]):
            return True
        case ast.Subscript(value=value, slice=ast.Slice()):
            return reads_like_a_shape(value, names)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _LISTING
        case ast.Name(id=name):
            return name in names
    return False


def names_of_shapes(root: ast.AST) -> frozenset[str]:
    """The variables of a function that are assigned what reads like sizes, or the rest of what is unpacked."""
    return frozenset(_assigned(root))


def _assigned(root: ast.AST) -> Iterator[str]:
    for node in ast.walk(root):
        match node:
            case ast.Starred(value=ast.Name(id=name), ctx=ast.Store()):
                yield name
            case ast.Assign(targets=targets, value=value):
                yield from (name for target in targets for name in _bound_to_shapes(target, value))
            case ast.NamedExpr(target=target, value=value):
                yield from _bound_to_shapes(target, value)


def _bound_to_shapes(target: ast.expr, value: ast.expr) -> Iterator[str]:
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for pair in zip(targets, values, strict=True):
                yield from _bound_to_shapes(*pair)
        case ast.Name(id=name), _ if not isinstance(value, ast.Tuple) and reads_like_a_shape(value):
            yield name
