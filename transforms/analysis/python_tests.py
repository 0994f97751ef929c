"""Tests that no tensor can decide, and which therefore stay as they are."""

from __future__ import annotations

import ast

# isinstance(), hasattr() and callable() have to look behind what is staged.
PYTHON_TESTS = frozenset({"issubclass"})


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
    return False
