"""Jumps: which suites are left by ``return`` or ``raise``, or by a ``break``/``continue`` of a loop around them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LOOPS = (ast.While, ast.For, ast.AsyncFor)


class Jumps:
    """The jumps out of statements, each statement looked at once."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, tuple[bool, bool]] = {}

    def of(self, node: ast.AST) -> tuple[bool, bool]:
        """Whether ``node`` contains a return or raise, and a break or continue that leaves it."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._look(node)
        return known

    def leave(self, nodes: Iterable[ast.AST]) -> bool:
        """Whether any jump leaves the statements."""
        return any(returns or loops for returns, loops in map(self.of, nodes))

    def _look(self, node: ast.AST) -> tuple[bool, bool]:
        if isinstance(node, ast.Return | ast.Raise):
            return True, False
        if isinstance(node, ast.Break | ast.Continue):
            return False, True
        if isinstance(node, NESTED):
            return False, False
        returns = loops = False
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, name, None)
            if not isinstance(inner, list):
                continue
            for child in inner:
                r, j = self.of(child)
                returns = returns or r
                # A loop takes the jumps of its body; those in its else clause belong to a loop around it.
                loops = loops or (j and not (name == "body" and isinstance(node, LOOPS)))
        return returns, loops
