"""Comprehensions over Python sequences with data-dependent conditions: ``[v for v in (a, b) if v > 0]``.

Python runs the comprehension itself and keeps every element; when the list is there, the conditions choose among its
elements, which have to be alike for that. So an element is computed whether it is kept or not, and may have no effects:
one that has makes the comprehension a loop (``looped_comprehension``).
"""

from __future__ import annotations

import dis
import itertools
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import torch
from torch import fx

from dy2st.staging.conditions import both
from dy2st.staging.iterator_positions import Place
from dy2st.staging.loops.comprehension import Clause, first_clause
from dy2st.staging.session import Session
from dy2st.tracing.effects import have_effects
from dy2st.tracing.row_reads import rows_at
from dy2st.values.stacked_list import StackedList, row_list


class NativeClause(Clause):
    """A ``for`` clause that Python runs."""

    staged = False
    goes_over = True  # as the iterators of ``Steps`` do

    def __init__(self, capture: Session, iterable: Iterable[Any], frame: FrameType) -> None:
        super().__init__(capture, frame, inner=False)
        self.iterable = iterable
        self.place = Place()
        self.conditions: list[Any] = []
        self.last: fx.Node | None = None
        self.stores = 0
        # The frame of the condition, and what it held there in the variables of functions around it.
        self.held: tuple[FrameType, dict[str, Any]] | None = None

    def __iter__(self) -> Iterator[Any]:
        advances = self.capture.advances
        for item in advances.watched(self.iterable):
            if any(clause.first is self and clause.staged for clause in self.capture.comprehensions):
                self.loop_or_refuse("has clauses over a Python sequence and over a tensor")
            self._check_element()
            advances.advance(self.place)
            self.conditions.append(True)
            yield item
        self._check_element()

    def add(self, test: torch.Tensor, frame: FrameType) -> None:
        """A condition of the element that is made now, in ``frame``."""
        capture = self.capture
        if not any(clause is self for clause in capture.comprehensions):
            self.scope = capture.trace_frames[-1]
            capture.comprehensions.append(self)
        if capture.comprehensions[-1] is not self or capture.trace_frames[-1] is not self.scope:
            self.loop_or_refuse("has clauses over a Python sequence and over a tensor")
        self.conditions[-1] = both(self.conditions[-1], test)
        self.last = next(iter(reversed(capture.subgraph.graph.nodes)))
        self.stores = capture.touches.total()
        self.held = frame, outer_values(frame)

    def taken(self) -> Any:
        """The condition of the element that was made last, whose truth alone is asked for; True if there is none."""
        if self.last is None:
            return True
        self._check_element()
        self.capture.comprehensions.remove(self)
        given, self.conditions[-1] = self.conditions[-1], True
        return given

    def _check_element(self) -> None:
        """What was computed behind a condition runs in any case."""
        node, self.last = self.last, None
        if node is None:
            return
        assert self.held is not None
        (frame, values), self.held = self.held, None
        if any(values.get(name) is not value for name, value in outer_values(frame).items()):
            self.loop_or_refuse("with a condition on a tensor assigns a variable outside of it, behind the condition")
        if self.capture.touches.total() > self.stores:
            self.loop_or_refuse("with a condition on a tensor changes the state around it")
        later = itertools.takewhile(lambda each: each.op != "root", _behind(node))
        if have_effects(later, self.capture.subgraph.modules):
            self.loop_or_refuse("with a condition on a tensor has an element with effects, or one that may fail")

    def close(self, values: Any) -> Any:
        """The elements whose conditions hold."""
        if not isinstance(values, list):
            self.refuse("with a condition on a tensor makes something other than a list")
        if len(values) != len(self.conditions):
            self.loop_or_refuse("with a condition on a tensor has other conditions too")
        mask = torch.stack([torch.full((), c) if isinstance(c, bool) else c for c in self.conditions])
        kept = mask.nonzero().squeeze(1)
        rows = row_list(values)
        return [StackedList([rows_at(column, kept) for column in rows.columns], rows.element)]


def _behind(node: fx.Node) -> Iterator[fx.Node]:
    while True:
        node = node.next
        yield node


def filters(test: torch.Tensor, frame: FrameType) -> bool:
    """Whether a condition has become one of the comprehension that Python runs in ``frame``."""
    clause = first_clause(frame)
    if not isinstance(clause, NativeClause):
        return False
    clause.add(test, frame)
    return True


def outer_values(frame: FrameType) -> dict[str, Any]:
    """What a comprehension's frame sees in the variables outside of it that it assigns to."""
    found: dict[str, Any] = {}
    for each in dis.get_instructions(frame.f_code):
        if each.opname in ("STORE_DEREF", "STORE_GLOBAL"):
            found[each.argval] = (frame.f_locals if each.opname == "STORE_DEREF" else frame.f_globals).get(each.argval)
    return found
