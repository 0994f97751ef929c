"""``any``, ``all`` and ``next``: no element is asked for behind the one that decides.

What computes an element may change state, draw a random number or fail. So each element behind a data-dependent one is
traced in an arm of its own, as an operand of ``or`` or ``and`` is: what has no effects becomes an Or or And.

Source: Python library reference, Built-in Functions, ``any`` and ``all``.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

from dy2st.calls.builtins.overloads import elements
from dy2st.errors import ComprehensionError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.staged_logic import StagedLazy
from dy2st.staging.conditions import both, condition, either, negated, truth_number
from dy2st.staging.containers.list_functions import first_of
from dy2st.staging.loops.comprehension import Comprehension, first_clause
from dy2st.staging.loops.filtered_comprehension import NativeClause
from dy2st.staging.loops.looped_comprehension import LoopedComprehension
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import TraceFrame


def staged_clause(capture: Session, values: Any) -> Comprehension | LoopedComprehension | None:
    """The clause over a tensor that a generator expression starts with, or the loop that it is."""
    clause = _clause(capture, values)
    return clause if isinstance(clause, Comprehension | LoopedComprehension) else None


def _clause(capture: Session, values: Any) -> Any:
    if not isinstance(values, types.GeneratorType) or values.gi_frame is None:
        return None
    capture.collecting.append(values)
    try:
        return first_clause(values.gi_frame)
    finally:
        capture.collecting.pop()


def first_element(capture: Session, generator: Any, *default: Any) -> Any:
    """``next`` of a generator expression that nobody else has."""
    clause = _clause(capture, generator)
    if isinstance(clause, NativeClause):
        return _first_of_python(capture, clause, generator, *default)
    if isinstance(clause, LoopedComprehension):
        clause.only_first = True
    elif isinstance(clause, Comprehension):
        clause.lazily = True
    else:
        return capture.call(next)(generator, *default)
    return capture.call(first_of)(elements(generator), *default)


def _first_of_python(capture: Session, clause: NativeClause, generator: Any, *default: Any) -> Any:
    """The same where Python goes over the elements; a data-dependent condition makes it a loop that ends."""
    capture.collecting.append(generator)
    try:
        found = next(generator, *default)
    finally:
        capture.collecting.pop()
    if any(condition is not True for condition in clause.conditions):
        clause.loop_or_refuse("with a condition on a tensor, whose first element is taken, is no loop")
    return found


class ShortCircuit:
    """One call of ``all`` (``conjunction``) or ``any`` on what Python iterates over."""

    def __init__(self, capture: Session, values: Any, *, conjunction: bool) -> None:
        self.capture = capture
        self.values = values
        self.conjunction = conjunction
        self.frame: FrameType = users_frame()
        clause = _clause(capture, values)
        self.clause: NativeClause | None = clause if isinstance(clause, NativeClause) else None
        if self.clause is not None:
            self.clause.lazily = True
        # The arm of the element before: what was begun in it may go on in the next one, which needs it to have run.
        self.before: TraceFrame | None = None

    def result(self) -> Any:
        """Its value: a bool, or a staged one."""
        generator = isinstance(self.values, types.GeneratorType)
        if generator:
            self.capture.collecting.append(self.values)
        try:
            return truth_number(self._decided(self._steps(), self.conjunction))
        finally:
            if generator:
                self.capture.collecting.pop()

    def _decided(self, steps: Iterator[Any], found: bool | torch.Tensor) -> bool | torch.Tensor:
        """The truth of the elements that are left, and of those that gave ``found``."""
        last = False
        while found is not (not self.conjunction) and not last:
            if isinstance(found, bool):
                found, last = self._next(steps)
                continue
            lazy = StagedLazy(self.capture, truth_number(found), found, (), self.conjunction, self.frame)
            lazy.more()
            assert lazy.scope is not None
            self._follow(lazy.scope)
            second, last = self._next(steps)
            if not last and not lazy.harmless():
                # In the same arm, where what this element has changed is seen.
                second, last = self._decided(steps, second), True
            found = condition(lazy.test(truth_number(second)))
        return found

    def _next(self, steps: Iterator[Any]) -> tuple[bool | torch.Tensor, bool]:
        """The truth of the next element, or what decides nothing; and whether there was none."""
        missing = object()
        value = next(steps, missing)
        return (self.conjunction, True) if value is missing else (self._truth(value), False)

    def _follow(self, scope: TraceFrame) -> None:
        before, self.before = self.before, scope
        if before is not None and not any(before is each for each in self.capture.trace_frames):
            before.merged = scope

    def _steps(self) -> Iterator[Any]:
        iterator = iter(self.capture.advances.watched(self.values))
        missing = object()
        while True:
            scope = self.capture.trace_frames[-1]
            value = next(iterator, missing)
            if self.capture.trace_frames[-1] is not scope:
                if self.clause is not None:
                    self.clause.loop_or_refuse("has clauses over a Python sequence and over a tensor")
                raise ComprehensionError(
                    "a generator expression has clauses over a Python sequence and over a tensor",
                    hint="write it as a for loop",
                    location=location_of(self.frame),
                )
            if value is missing:
                return
            yield value

    def _truth(self, value: Any) -> bool | torch.Tensor:
        """Whether an element is true, or false for ``all``; one that a condition leaves out decides nothing."""
        given = True if self.clause is None else self.clause.taken()
        truth = condition(value)
        decided: bool | torch.Tensor = either(negated(given), truth) if self.conjunction else both(given, truth)
        return decided
