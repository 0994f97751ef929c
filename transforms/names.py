"""Names for what passes generate: readable, numbered by the user's line, never one of the user's."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


# What the names that passes make look like: the run time hides them from locals(), vars() and dir().
GENERATED = re.compile(r"d2s_*\Z|(?:if|loop|fn|gen|try|and|or|value|subject|target)_\d+(?:_\d+)?\Z")


class NameSupply:
    """Hands out names that nobody uses."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used = set(used)
        self._of: dict[tuple[ast.AST, str], str] = {}
        self.operators = "d2s"
        while self.operators in self._used:
            self.operators += "_"

    def fresh(self, prefix: str, line: int) -> str:
        """A new name ``prefix_line``, or ``prefix_line_2``, ..."""
        name, count = f"{prefix}_{line}", 1
        while name in self._used:
            count += 1
            name = f"{prefix}_{line}_{count}"
        self._used.add(name)
        return name

    def of(self, node: ast.AST, prefix: str) -> str:
        """The one name that belongs to a construct, the same for every pass that asks."""
        key = (node, prefix)
        if key not in self._of:
            self._of[key] = self.fresh(prefix, line_of(node))
        return self._of[key]


def line_of(node: ast.AST) -> int:
    """The line of a construct; a ``case`` has its pattern's."""
    line: int = getattr(node.pattern if isinstance(node, ast.match_case) else node, "lineno", 1)
    return line
