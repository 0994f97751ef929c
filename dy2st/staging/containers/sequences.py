"""Shapes and tuples of sizes, compared size by size: ``x.shape == y.shape``."""

from __future__ import annotations

from typing import Any

import torch

from dy2st.staging.conditions import both, condition, truth_number
from dy2st.values.number import Number


def are_staged(a: Any, b: Any) -> bool:
    """Whether two tuples (shapes among them) have sizes that only the graph knows."""
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return False
    return any(isinstance(size, (torch.SymInt, Number)) for size in (*a, *b))


def same_sizes(a: tuple[Any, ...], b: tuple[Any, ...]) -> Any:
    """``a == b`` of tuples of numbers: a bool, symbolic where one size decides, else staged."""
    if len(a) != len(b):
        return False
    tests = [x == y for x, y in zip(a, b, strict=True)]
    open_tests = [test for test in tests if not isinstance(decided := condition(test), bool) or not decided]
    if len(open_tests) == 1 and isinstance(open_tests[0], torch.SymBool):
        return open_tests[0]
    same: Any = True
    for test in open_tests:
        same = both(same, condition(test))
        if same is False:
            return False
    return truth_number(same)
