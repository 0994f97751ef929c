"""The numbers that a model's own source names: what its conditions compare with is often one of them.

Source: Fraser and Arcuri, "The seed is strong: seeding strategies in search-based software testing", 2012 (constants
taken from the code as first values of a search).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

from dy2st.report.model import PathSite

# So many at most: each is worth a few runs.
_MOST = 24
# These are tried anyway.
_USUAL = (0.0, 1.0, -1.0)

Number = float
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def numbers_near(model: Any, sites: Iterable[PathSite]) -> tuple[Number, ...]:
    """The numbers in the functions that sites lie in, and among the attributes of the user's modules; each once."""
    found = [each for site in sites for each in _in_function(site.file, site.line)]
    owners = model.modules() if isinstance(model, torch.nn.Module) else [getattr(model, "__self__", None)]
    for owner in owners:
        if owner is not None and not type(owner).__module__.startswith("torch."):
            found += [value for name, value in vars_of(owner).items() if not name.startswith("_") and _is_number(value)]
    usable = [float(each) for each in found if math.isfinite(each) and abs(each) not in _USUAL]
    return tuple(dict.fromkeys(usable))[:_MOST]


def vars_of(owner: Any) -> dict[str, Any]:
    """The attributes that an object itself has."""
    return getattr(owner, "__dict__", {})


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@cache
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def _in_function(file: str, line: int) -> Iterator[Number]:
    """The numbers in the innermost function around a line, those of the constants of its module that it names too."""
    tree = _tree(file)
    if tree is None:
        return
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, Function) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not around:
        return
    function = max(around, key=lambda node: node.lineno)
    named = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    yield from _numbers(function)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and named & {t.id for t in statement.targets if isinstance(t, ast.Name)}:
            yield from _numbers(statement.value)


def _numbers(node: ast.AST) -> Iterator[Number]:
    for each in ast.walk(node):
        if isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.USub):
            yield from (-value for value in _numbers(each.operand) if isinstance(each.operand, ast.Constant))
        if isinstance(each, ast.Constant) and isinstance(each.value, (int, float)) and _is_number(each.value):
            yield each.value
