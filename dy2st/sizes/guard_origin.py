"""Which Python code is testing a symbolic size right now, and whether it raises if the test comes out otherwise."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import sys
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.source.user_frames import TORCH, frames, is_ours, is_users, is_users_frame

# Code of torch that carries a test out for others.
CARRIERS = tuple(
    f"{folder}{name}"
    for folder in TORCH
    for name in (
        "fx/experimental/",
        "_export/non_strict_utils",
        "overrides.py",
        "utils/_stats",
        "_ops.py",
        "__init__.py",
    )
)


@dataclass(frozen=True)
class TestingCode:
    """The code that tests a size.

    ``torch_function``: the function of torch that it belongs to, empty for others' code. ``raises``: it raises if the
    test comes out otherwise. ``copies``: it only asks whether to make a copy (``x.contiguous()``).
    """

    torch_function: str
    raises: bool
    copies: bool = False

    @classmethod
    def running(cls, value: Any) -> TestingCode:
        """The code that is running; ``value`` is how its test comes out."""
        called, checks = "", False
        for frame in frames(sys._getframe(1)):
            code = frame.f_code
            name = code.co_filename
            checks = checks or code.co_name == "expect_true"  # torch._check
            if code.co_name == "__torch_function__" and not called:
                called = getattr(frame.f_locals.get("func"), "__name__", "")
            if is_users(name):
                return cls(called, raises=checks or _raises_unless(code, frame.f_lineno, value))
            if name.startswith(TORCH) and not name.startswith(CARRIERS):
                raises = checks or _raises_unless(code, frame.f_lineno, value)
                return cls(code.co_name, raises=raises, copies=_called(frame) == "contiguous")
        return cls(called, raises=checks)


def testing_frame() -> FrameType | None:
    """The frame of torch's code that tests a size now; None where others' code does."""
    for frame in frames(sys._getframe(1)):
        name = frame.f_code.co_filename
        if is_users(name):
            return None
        if name.startswith(TORCH) and not name.startswith(CARRIERS):
            return frame
    return None


def demanded_of_the_user() -> bool:
    """Whether a function of torch demands something of its arguments now, and not code of ours by ``torch._check``."""
    for frame in frames(sys._getframe(1)):
        if is_users_frame(frame):
            return True
        if frame.f_code.co_name == "_check":
            return frame.f_back is not None and not is_ours(frame.f_back.f_code.co_filename)
        if frame.f_code.co_name == "__torch_function__":
            return True
    return False


def _called(frame: FrameType) -> str:
    """The name of the method that a frame is calling, or nothing."""
    positions = list(frame.f_code.co_positions())
    _, line, _, column = positions[frame.f_lasti // 2]
    text = linecache.getline(frame.f_code.co_filename, line or 0)[:column]
    found = re.search(r"\.(\w+)\([^()]*\)$", text)
    return found[1] if found else ""


def _raises_unless(code: CodeType, line: int, value: Any) -> bool:
    """Whether a test at ``line`` is that of an ``if`` whose suite for the other outcome only raises."""
    holds = bool(value)
    for first, last, then, orelse in _raising_tests(code):
        if first <= line <= last:
            return orelse if holds else then
    return False


@functools.cache
def _raising_tests(code: CodeType) -> list[tuple[int, int, bool, bool]]:
    """For each ``if`` and ``assert`` of a function: the test's lines, and which outcome raises."""
    try:
        lines, start = inspect.getsourcelines(code)
        tree = ast.parse(inspect.cleandoc("\n" + "".join(lines)) if lines[0][:1] == " " else "".join(lines))
    except (OSError, SyntaxError, TypeError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.Assert)):
            first, last = node.test.lineno + start - 1, (node.test.end_lineno or node.test.lineno) + start - 1
            if isinstance(node, ast.Assert):
                found.append((first, last, False, True))
            elif _simple(node.test):
                suites = _only_raises(node.body), bool(node.orelse) and _only_raises(node.orelse)
                # What is asked is what stands behind the ``not``.
                negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
                found.append((first, last, *(reversed(suites) if negated else suites)))
    return found


def _simple(test: ast.expr) -> bool:
    """Whether a test is one comparison or its negation: no part of it decides alone."""
    return not any(isinstance(part, ast.BoolOp | ast.IfExp) for part in ast.walk(test))


def _only_raises(suite: list[ast.stmt]) -> bool:
    return isinstance(suite[-1], ast.Raise)


def arguments_of_torch_function() -> tuple[torch.Tensor, ...]:
    """The tensors among the arguments of the function of torch that the user's code is calling."""
    for frame in frames(sys._getframe(1)):
        if is_users_frame(frame):
            break
        if frame.f_code.co_name == "__torch_function__":
            given = frame.f_locals.get("args"), frame.f_locals.get("kwargs")
            return tuple(leaf for leaf in pytree.tree_leaves(given) if isinstance(leaf, torch.Tensor))
    return ()
