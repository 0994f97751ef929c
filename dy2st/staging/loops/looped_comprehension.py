"""Comprehensions whose elements change what the next one reads: a loop that appends, which carries its state.

    [cell(x[t]) for t in range(n)]

is, where ``cell`` keeps something, what this is:

    made = []
    for t in range(n):
        made.append(cell(x[t]))

Plainly a comprehension is traced as one element, which is a function of what its clauses give; where that turns out to
be wrong, the plan of the export has it staged like this. Python runs the comprehension itself, each clause as often as
its loop's body has to be traced, and an operator hands over the elements. A data-dependent condition opens an arm,
which ends when its clause goes on. What Python has gathered itself is of no use, and is not looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import torch

from dy2st.errors import Location
from dy2st.plan import plan
from dy2st.source.user_frames import location_of
from dy2st.staging.branches.paths import flow_at_end, merge
from dy2st.staging.conditions import condition, negated, truth_number
from dy2st.staging.flow import Flow
from dy2st.staging.loops.comprehension import (
    Clause,
    Comprehension,
    first_clause,
    is_gathered,
    site_of,
)
from dy2st.staging.loops.driver import CapturedLoop
from dy2st.staging.loops.iterables import StagedIterable, as_iterable
from dy2st.staging.session import MODE, Session
from dy2st.staging.trace_frame import TraceFrame


class ClauseLoop(CapturedLoop):
    """The loop of one clause over what has a data-dependent length."""

    reported = False  # as comprehensions are not

    def __init__(self, looped: LoopedComprehension, iterable: StagedIterable, frame: FrameType) -> None:
        super().__init__(looped.capture, (), (), False, frame)
        self.location = replace(self.location, construct="comprehension")
        self.looped, self.iterable = looped, iterable

    def __iter__(self) -> Iterator[Any]:
        assert self.iterable is not None
        self.iterable = self.iterable.begin()
        yield from self._staged_iterations()
        self.result()

    def takes_next(self) -> Any:
        """Whether the consumer wants another element."""
        return self.looped.goes_on()


class LoopedComprehension:
    """One run of such a comprehension; ``around`` is the frame that its first iterable is evaluated in."""

    def __init__(self, capture: Session, around: FrameType) -> None:
        self.capture, self.around = capture, around
        # The elements so far; None before the first clause begins.
        self.made: list[Any] | None = None
        # The frame that the comprehension itself runs in.
        self.frame: FrameType | None = None
        self.done = False
        # Of what ``all`` consumes True, of what ``any`` does False: what is made then is its verdict alone.
        self.conjunction: bool | None = None
        # Whether the first element alone is asked for, as by ``next``.
        self.only_first = False
        self.arms: list[tuple[torch.Tensor, TraceFrame, Location]] = []

    def first(self, iterable: Any, frame: FrameType) -> Iterator[Any]:
        """The elements of its first clause."""
        home = sys._getframe(1)
        if home is not self.around and not is_gathered(home):
            staged = as_iterable(iterable)
            watched = self.capture.advances.watched
            yield from watched(iterable) if staged is None else Comprehension(self.capture, staged, frame)
            return
        self.made, self.frame = self.capture.new([]), home
        if self.conjunction is not None:
            self.made.append(self.conjunction)
        yield from self.clause(iterable, frame)
        self.done = True

    def clause(self, iterable: Any, frame: FrameType) -> Iterator[Any]:
        """The elements of a clause, each of which ends the arms that were opened for the one before."""
        staged = as_iterable(iterable)
        before = len(self.arms)
        watched = self.capture.advances.watched
        for item in watched(iterable) if staged is None else ClauseLoop(self, staged, frame):
            if staged is None and not self._another(frame):
                break
            arms = len(self.arms)
            yield item
            self._close_to(arms)
        self._close_to(before)

    def _another(self, frame: FrameType) -> bool:
        """Whether Python may go on: elements behind one that may decide are in an arm of their own."""
        goes_on = self.goes_on()
        if isinstance(goes_on, torch.Tensor):
            self.filter(goes_on, frame)
        return goes_on is not False

    def add(self, value: Any) -> None:
        """``value`` is the next element."""
        assert self.made is not None
        if self.conjunction is None:
            self.capture.call(self.made.append)(value)
        else:
            self.capture.target(self.made)[0] = truth_number(condition(value))

    def goes_on(self) -> Any:
        """Whether another element is asked for, if there is one."""
        if self.conjunction is None and not self.only_first:
            return True
        assert self.made is not None
        if self.only_first:
            return negated(condition(self.capture.call(len)(self.made) > 0))
        verdict = condition(self.made[0])
        return verdict if self.conjunction else negated(verdict)

    def filter(self, test: torch.Tensor, frame: FrameType) -> None:
        """What follows in this iteration runs under a data-dependent condition."""
        location = replace(location_of(frame), construct="filter")
        scope = self.capture.push(f"if_{location.line}", arm=True)
        self.capture.learn(scope, test, value=True)
        self.arms.append((test, scope, location))

    def _close_to(self, count: int) -> None:
        """End the arms but for the first ones."""
        while len(self.arms) > count:
            test, scope, location = self.arms.pop()
            ended = flow_at_end(self.capture, Flow({}), scope)
            self.capture.pop()
            skipped = self.capture.push(f"skipped_{location.line}")
            self.capture.pop()
            merge(self.capture, test, (scope.subgraph, skipped.subgraph), (ended, Flow({})), (), location)


class LoopedComprehensions:
    """Those that run now."""

    def __init__(self) -> None:
        self.running: list[LoopedComprehension] = []

    def begin(self, capture: Session, iterable: Any, frame: FrameType, *, inner: bool) -> Iterator[Any] | None:
        """The elements of a clause that is evaluated in ``frame``, if it belongs to such a comprehension."""
        if inner:
            running = self.of(frame)
            return None if running is None else running.clause(iterable, frame)
        if site_of(frame, location_of(frame)) not in plan().looped:
            return None
        self.running.append(LoopedComprehension(capture, frame))
        return self.running[-1].first(iterable, frame)

    def element(self, value: Any, frame: FrameType) -> None:
        """``value`` is an element of the comprehension that runs in ``frame``."""
        running = self.of(frame)
        if running is not None:
            running.add(value)
        elif isinstance(clause := first_clause(frame), Clause):
            clause.told = True

    def finished(self, frame: FrameType, *, own: bool = False) -> list[Any] | None:
        """What the comprehension has made that ``frame`` has just evaluated, or that ran in it (``own``)."""
        for each in reversed(self.running):
            if each.done and frame is (each.frame if own else each.around):
                self.running.remove(each)
                return each.made
        return None

    def of(self, frame: FrameType) -> LoopedComprehension | None:
        """The comprehension that runs in ``frame``."""
        return next((each for each in reversed(self.running) if each.frame is frame), None)


def mapped(iterable: StagedIterable, function: Callable[[Any], Any], frame: FrameType) -> list[Any]:
    """``[function(x) for x in iterable]``."""
    capture = MODE.capture
    assert capture is not None
    if site_of(frame, location_of(frame)) in plan().looped:
        looped = LoopedComprehension(capture, sys._getframe(0))
        for item in looped.first(iterable, frame):
            looped.add(function(item))
        assert looped.made is not None
        return looped.made
    clause = Comprehension(capture, iterable, frame)
    clause.first, clause.told = clause, True
    value = function(clause.open())
    if capture.comprehensions[-1] is not clause:
        clause.refuse("over a tensor can't be staged here")
    capture.comprehensions.pop()
    return clause.close([value])


def decided(iterable: StagedIterable, *, conjunction: bool, frame: FrameType) -> Any:
    """``all`` (``conjunction``) or ``any`` of what ``frame`` goes over: no element behind the one that decides."""
    capture = MODE.capture
    assert capture is not None
    looped = LoopedComprehension(capture, sys._getframe(0))
    looped.conjunction = conjunction
    for item in looped.first(iterable, frame):
        looped.add(item)
    assert looped.made is not None
    return looped.made[0]
