"""How a culprit is told: the line's variable, and the two values at the worst place."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from dy2st.onnx.runtime.stepping import Place


def both_values(expected: torch.Tensor, value: torch.Tensor, stage: str) -> str:
    """``eager 1 vs onnxruntime 4 at [2]``, where two tensors of one shape are furthest apart."""
    wide = (expected.double() - value.double()).abs().nan_to_num(float("inf"), float("inf")).flatten()
    worst = int(wide.argmax())
    index = [int(i) for i in torch.unravel_index(torch.tensor(worst), expected.shape)]
    where = f" at {index}" if index else ""
    return f"eager {_plain(expected.flatten()[worst])} vs {stage} {_plain(value.flatten()[worst])}{where}"


def _plain(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.9g}" if isinstance(item, float) else str(item)


def place_text(place: Place) -> str:
    """The arms and trips that lead to a node: ``trip 2 of loop, then-arm of branch``."""
    return ", ".join(f"{_way_text(way)} of {name}" for name, way in place)


def _way_text(way: str | int) -> str:
    if isinstance(way, int):
        return f"trip {way + 1}"
    return "all trips" if way == "all" else f"{way}-arm"


def variable_of(file: str, line: int) -> str:
    """What a line assigns to or asks: the name, or the source of the condition; the line itself if neither."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return ""
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    if not inside:
        return ""
    node = max(inside, key=lambda n: (n.lineno, -(n.end_lineno or n.lineno)))
    if isinstance(node, ast.Assign):
        return ", ".join(ast.unparse(target) for target in node.targets)
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return ast.unparse(node.target)
    if isinstance(node, (ast.If, ast.While)):
        return ast.unparse(node.test)
    if isinstance(node, ast.For):
        return ast.unparse(node.target)
    return ast.unparse(node).splitlines()[0]
