"""Tests that no tensor can decide, and which therefore stay as they are."""

from __future__ import annotations

import ast

# isinstance() and type() have to look behind numbers that are staged.
PYTHON_TESTS = frozenset({"issubclass", "hasattr", "callable"})
IDENTITIES = (True, False, ...)


def python_only(node: ast.expr, shadowed: frozenset[str]) -> bool:
    """Whether the value of ``node`` is surely a Python bool or a constant; ``shadowed`` are the user's own names."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id="__debug__"):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in PYTHON_TESTS and name not in shadowed
        case ast.UnaryOp(op=ast.Not()):
            return python_only(node.operand, shadowed)
        case ast.UnaryOp():
            return isinstance(node.operand, ast.Constant)
        case ast.BoolOp():
            return all(python_only(value, shadowed) for value in node.values)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return _identity(node.left, shadowed) or _identity(node.comparators[0], shadowed)
    return False


def _identity(node: ast.expr, shadowed: frozenset[str]) -> bool:
    match node:
        case ast.Constant(value=value):
            return value is True or value is False or value is ...
        case ast.Name(id="NotImplemented" | "Ellipsis" as name):
            return name not in shadowed
    return False


def is_singleton(node: ast.expr) -> bool:
    """Whether ``node`` is the literal ``True``, ``False`` or ``...``: nothing that is staged is ever that object."""
    return isinstance(node, ast.Constant) and (node.value is True or node.value is False or node.value is ...)
