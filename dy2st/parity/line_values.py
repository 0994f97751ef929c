"""What each line of the user's code computes while it runs as Python: the values of what it assigns and returns."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.parity.budget import Budget
from dy2st.source.user_frames import is_users

# Copies of more numbers than these are not kept: the search for a line is given up.
_MOST_NUMBERS = 100_000_000
_COMPOUND = (ast.If, ast.While, ast.For, ast.With, ast.Match, ast.Try)


@dataclass(frozen=True)
class LineValue:
    """A tensor or number that a statement has assigned or returned.

    ``line`` is the statement's first, ``end`` its last; ``time`` counts its runs from 0; ``part`` numbers the tensors
    and numbers of one run. ``alone`` if there is one, and the statement has no body.
    """

    file: str
    line: int
    end: int
    time: int
    part: int
    alone: bool
    value: torch.Tensor | float


@dataclass(frozen=True)
class _Statement:
    line: int
    end: int
    targets: tuple[CodeType, ...]
    returns: bool
    counts: bool  # a loop's own numbers are constants of a graph, or none of its values


@dataclass
class Recorder:
    """Follows the lines that run; ``values`` has what they gave, in order."""

    budget: Budget = field(default_factory=Budget)
    values: list[LineValue] = field(default_factory=list)
    runs: Counter[tuple[str, int]] = field(default_factory=Counter)
    _current: dict[FrameType, _Statement | None] = field(default_factory=dict)
    _numbers: int = 0

    def follow(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        """The trace function of new frames: only the user's own are followed."""
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not is_users(code.co_filename):
            return None
        self._current[frame] = None
        return self._step

    def _step(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        self.budget.spend()
        file = frame.f_code.co_filename
        if event == "line":
            now = _statements(file).get(frame.f_lineno)
            before = self._current.get(frame)
            if now is not before:
                self._ended(frame, before, None)
                self._current[frame] = now
        elif event == "return":
            self._ended(frame, self._current.pop(frame, None), arg)
        return self._step

    def _ended(self, frame: FrameType, statement: _Statement | None, returned: Any) -> None:
        """A statement has run: keep what it has assigned."""
        if statement is None:
            return
        file = frame.f_code.co_filename
        time = self.runs[file, statement.line]
        self.runs[file, statement.line] += 1
        found = [returned] if statement.returns else []
        names = {**frame.f_globals, **frame.f_locals}
        for target in statement.targets:
            with suppress(Exception):  # a property may raise; it has no value then
                found.append(eval(target, names))  # noqa: S307 - a name or an attribute of the user's own code
        kinds = (torch.Tensor,) if statement.counts else (torch.Tensor, bool, int, float)
        leaves = [leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, kinds)]
        for part, leaf in enumerate(leaves):
            self._numbers += leaf.numel() if isinstance(leaf, torch.Tensor) else 1
            if self._numbers > _MOST_NUMBERS:
                raise MemoryError("too many values to keep")
            kept = leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
            alone = len(leaves) == 1 and not statement.counts
            self.values.append(LineValue(file, statement.line, statement.end, time, part, alone, kept))


@contextmanager
def recorded_lines(budget: Budget | None = None) -> Iterator[Recorder]:
    """Record the lines that run inside; a debugger or a coverage tool waits meanwhile.

    Raises:
        OverBudgetError: what runs inside takes more than the budget.
    """
    recorder = Recorder(Budget() if budget is None else budget)
    before = sys.gettrace()
    sys.settrace(recorder.follow)
    try:
        yield recorder
    finally:
        sys.settrace(before)


@cache
def _statements(file: str) -> dict[int, _Statement]:
    """The statement of each line; of one that has a body, its first lines alone."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[int, _Statement] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        end = node.end_lineno or node.lineno
        if isinstance(node, _COMPOUND):
            body = node.cases if isinstance(node, ast.Match) else node.body
            first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
            end = max(node.lineno, first.lineno - 1)
        statement = _Statement(
            node.lineno, end, tuple(_targets(node)), isinstance(node, ast.Return), isinstance(node, ast.For)
        )
        found |= dict.fromkeys(range(node.lineno, end + 1), statement)
    return found


def _targets(node: ast.stmt) -> Iterator[CodeType]:
    """What a statement changes, as code that reads it: of ``x[0] = 1`` it is ``x``."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
        targets = [node.target]
    while targets:
        target = targets.pop(0)
        if isinstance(target, (ast.Tuple, ast.List)):
            targets = [*target.elts, *targets]
            continue
        while isinstance(target, (ast.Subscript, ast.Starred)):
            target = target.value
        if isinstance(target, (ast.Name, ast.Attribute)):
            yield compile(ast.unparse(target), "<target>", "eval")
