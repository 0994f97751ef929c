"""Comprehensions over what has a data-dependent length: a loop that stacks what the element expression gives.

Python runs the comprehension itself, once: each ``for`` clause gives one element, in a subgraph of its own, and each
data-dependent condition opens an arm. When the list is there, the clauses are closed from the inside out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import FrameType, MappingProxyType
from typing import Any

import torch
from torch import fx

from dy2st.errors import ComprehensionError, ListChangeError, Location
from dy2st.plan import plan
from dy2st.sizes.varying_sizes import vary
from dy2st.source.user_frames import frames, location_of
from dy2st.staging.branches.paths import flow_at_end, merge
from dy2st.staging.flow import Flow, Own
from dy2st.staging.iterator_positions import iterators_so_far
from dy2st.staging.loops.iterables import StagedIterable
from dy2st.staging.session import MODE, Session
from dy2st.staging.trace_frame import TraceFrame
from dy2st.staging.unequal_lengths import note_element
from dy2st.tracing.effects import have_effects
from dy2st.tracing.emission import emit_loop, fresh_copy
from dy2st.tracing.subgraph import new_input
from dy2st.tracing.tracer import same_size
from dy2st.values.elements import Element, UnlikeElementsError, cell_values, element_of
from dy2st.values.number import Number
from dy2st.values.stacked_list import StackedList, constant_rest, row_list, size_row


class Clause:
    """A part of a comprehension; a ``staged`` one opens a subgraph."""

    staged = True
    # Whether who consumes it may need some of its elements only.
    lazily = False
    # The iterators that there were before, where only one element is traced.
    older: Mapping[int, Any] = MappingProxyType({})
    construct = ""

    def __init__(self, capture: Session, frame: FrameType, *, inner: bool) -> None:
        self.capture = capture
        # Whether it is not the first one, and so evaluated in the comprehension's own frame.
        self.inner = inner
        self.frame = frame
        self.location: Location = replace(location_of(frame), construct=self.construct)
        self.scope: TraceFrame
        around = first_clause(frame) if self.inner else None
        # The clause that the comprehension begins with, and whether that has been told of its elements.
        self.first: Clause = around if isinstance(around, Clause) else self
        self.told = False

    def loop_or_refuse(self, what: str) -> None:
        """What follows the clause is no function of the element alone: the comprehension has to be a loop."""
        site = site_of(self.first.frame, self.first.location)
        if (self.first.told or self.first is not self) and site not in plan().looped:
            plan().loop_over(site)
        self.refuse(what)

    def refuse(self, what: str) -> None:
        """Raise the error of a comprehension that can't be staged."""
        raise ComprehensionError(
            f"a comprehension {what}",
            hint="write it as a for loop that appends to a list, then torch.stack the list",
            location=self.location,
        )

    def close(self, values: list[Any]) -> list[Any]:
        """The elements that one run of the clause gave are ``values``; what all runs give."""
        raise NotImplementedError

    def _check(self, values: Any) -> None:
        if self.capture.trace_frames[-1] is not self.scope or not isinstance(values, list):
            self.refuse("over a tensor makes something other than a list")
        if self.scope.journal.old:
            self.loop_or_refuse("over a tensor changes the state around it")


class Comprehension(Clause):
    """One ``for`` clause: what follows it is traced once, in a subgraph of its own."""

    construct = "comprehension"

    def __init__(self, capture: Session, iterable: StagedIterable, frame: FrameType, *, inner: bool = False) -> None:
        super().__init__(capture, frame, inner=inner)
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        capture = self.capture
        if self.inner and any(clause.inner and clause.frame is self.frame for clause in capture.comprehensions):
            self.loop_or_refuse("has a clause over a tensor behind one over a Python sequence")
        yield self.open()

    def open(self) -> Any:
        """Open the subgraph; the element of the iteration that it stands for."""
        capture = self.capture
        self.iterable = self.iterable.begin()
        self.older = iterators_so_far()
        self.scope = capture.push(f"comprehension_{self.location.line}")
        capture.comprehensions.append(self)
        tracing = capture.tracing
        with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
            counter = torch.empty((), dtype=torch.int64)
        self.node = self.scope.subgraph.graph.placeholder("iteration")
        tracing.track(counter, tracing.tracer.proxy(self.node))
        return self.iterable.at(counter)

    def close(self, values: list[Any]) -> list[Any]:
        """Emit the loop."""
        capture, tracing = self.capture, self.capture.tracing
        self._check(values)
        if len(values) != 1:
            self.loop_or_refuse("has clauses over a tensor and over a Python sequence")
        (value,) = values
        body = self.scope.subgraph
        if self.lazily and have_effects(body.graph.nodes, body.modules, self._has_its_row):
            self.loop_or_refuse("over a tensor, not all elements of which may be needed, may fail or draw in them")
        go = torch.full((), True, dtype=torch.bool)
        length = self.iterable.length
        trips = length.tensor if isinstance(length, Number) else length
        if isinstance(value, StackedList):
            return [self._grown(value, go, trips)]
        try:
            element = element_of(value)
        except UnlikeElementsError as unlike:
            unlike.refer()
            self.refuse(f"over a tensor makes a list: {unlike.what}")
        note_element(capture, value, set())
        if isinstance(value, torch.Tensor) and vary(tracing, body, self.node, value.shape):
            return [self._uneven(value, element, go, trips)]
        rows = [fresh_copy(cell) for cell in cell_values(value, element)]
        self._check_sizes(size for row in rows for size in row.shape)
        capture.pop()
        with tracing.at(self.location):
            _, stacks = emit_loop(
                tracing, capture.subgraph, body, [self.node], trips, None, [], [go], rows, [], can_stop=False
            )
        return [StackedList(stacks, element)]

    def _has_its_row(self, node: fx.Node) -> bool:
        """Whether a node takes the row of the iteration from a dimension as long as what is gone over."""
        if node.target is not torch.ops.aten.select.int:
            return False
        data, dim, place = node.args
        if not isinstance(data, fx.Node) or not isinstance(dim, int) or not isinstance(place, fx.Node):
            return False
        if place.target is not torch.ops.aten.item.default or place.args[0] is not self.node:
            return False
        length = self.iterable.length
        return not isinstance(length, Number) and same_size(data.meta["val"].shape[dim], length)

    def _check_sizes(self, sizes: Iterable[Any]) -> None:
        """Refuse elements whose size is another one in each iteration."""
        if vary(self.capture.tracing, self.scope.subgraph, self.node, sizes):
            raise ListChangeError(
                "a comprehension makes a list of tensors whose size may differ from one to the next",
                hint="pad them to one size, or collect them in one tensor in a loop: found = torch.cat([found, piece])",
                location=self.location,
            )

    def _uneven(self, value: torch.Tensor, element: Element, go: torch.Tensor, trips: Any) -> StackedList:
        """A loop whose iterations give tensors of different sizes."""
        capture, tracing = self.capture, self.capture.tracing
        body = self.scope.subgraph
        with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
            so_far = torch.empty([tracing.fresh_size()], dtype=value.dtype)
        with body.graph.inserting_after(self.node):
            node = new_input(body.graph, "numbers", 1)
        tracing.track(so_far, tracing.tracer.proxy(node))
        rest = constant_rest(value)
        outputs = [go, torch.cat([so_far, value.reshape(-1)])]
        sizes = fresh_copy(size_row(value))
        capture.pop()
        initial, inputs = [torch.zeros([0], dtype=value.dtype)], [self.node, node]
        with tracing.at(self.location):
            (flat,), (stacked,) = emit_loop(
                tracing,
                capture.subgraph,
                body,
                inputs,
                trips,
                None,
                initial,
                outputs,
                [sizes],
                [((0, 0, 0),)],
                can_stop=False,
            )
        return StackedList([stacked.flatten(0, 1), flat], element, uneven=True, rest=rest)

    def _grown(self, rows: StackedList, go: torch.Tensor, trips: Any) -> StackedList:
        """A loop whose iterations give different numbers of elements."""
        capture, tracing = self.capture, self.capture.tracing
        body = self.scope.subgraph
        first = body.layer.first_symbol
        self._check_sizes(size for column in rows.columns for size in column.shape[1:])
        inputs, so_far = [self.node], []
        with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
            count = tracing.fresh_size()
            metadata = [torch.empty([count, *c.shape[1:]], dtype=c.dtype) for c in rows.columns]
        for value in metadata:
            with body.graph.inserting_after(inputs[-1]):
                node = new_input(body.graph, "rows", len(inputs))
            tracing.track(value, tracing.tracer.proxy(node))
            inputs.append(node)
            so_far.append(value)
        grown = row_list([StackedList(so_far, rows.element), rows], rows.element).columns
        capture.pop()
        initial = []
        for column in rows.columns:
            sizes = tracing.sizes_outside(column.shape[1:], first)
            initial.append(torch.zeros([0, *sizes], dtype=column.dtype))
        varying = [((0, 0, 0),)] * len(initial)
        with tracing.at(self.location):
            finals, _ = emit_loop(
                tracing, capture.subgraph, body, inputs, trips, None, initial, [go, *grown], [], varying, can_stop=False
            )
        return StackedList(finals, rows.element)


class Filter(Clause):
    """A data-dependent condition: what follows it is traced into an arm."""

    construct = "filter"

    def __init__(self, capture: Session, test: torch.Tensor, frame: FrameType) -> None:
        super().__init__(capture, frame, inner=True)
        self.test = test
        self.scope = capture.push(f"if_{self.location.line}")
        capture.learn(self.scope, test, value=True)
        capture.comprehensions.append(self)

    def close(self, values: list[Any]) -> list[Any]:
        """Emit the branch: all elements, or none."""
        capture = self.capture
        self._check(values)
        rows = row_list(values)
        ended = flow_at_end(capture, Flow({Own.ELEMENTS: [rows]}), self.scope)
        capture.pop()
        skipped = capture.push(f"skipped_{self.location.line}")
        capture.pop()
        arms = (self.scope.subgraph, skipped.subgraph)
        flow = merge(capture, self.test, arms, (ended, Flow({Own.ELEMENTS: []})), (Own.ELEMENTS,), self.location)
        made: list[Any] = flow.env[Own.ELEMENTS]
        return made


def site_of(frame: FrameType, location: Location) -> Any:
    """A comprehension in the code of ``frame``, whenever it runs."""
    return frame.f_code, location.line, location.column


def is_own_frame(frame: FrameType) -> bool:
    """Whether a frame is a comprehension's own."""
    return frame.f_code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def is_gathered(frame: FrameType) -> bool:
    """Whether a comprehension makes a list, or is a generator of which a builtin takes the elements."""
    capture = MODE.capture
    collected = capture is not None and any(values.gi_frame is frame for values in capture.collecting)
    # Whoever else asks for the elements of a generator gets them one by one.
    return collected or frame.f_code.co_name == "<listcomp>"


def first_clause(frame: FrameType) -> Any:
    """What the comprehension that runs in ``frame`` iterates over, if it is a clause of ours."""
    if not is_gathered(frame):
        return None
    running = getattr(frame.f_locals.get(".0"), "gi_frame", None)
    return None if running is None else running.f_locals.get("self")


def filtered(capture: Session, test: torch.Tensor, frame: FrameType) -> bool:
    """Whether a data-dependent condition has become a clause of the comprehension that runs in ``frame``."""
    if not capture.comprehensions or not is_own_frame(frame):
        return False
    last = capture.comprehensions[-1]
    if last.scope is not capture.trace_frames[-1] or not last.staged:
        return False
    if last.frame not in (frame, frame.f_back) and first_clause(frame) is not last:
        return False
    Filter(capture, test, frame)
    return True


def finished(capture: Session, values: Any, frame: FrameType) -> Any:
    """The list that the comprehension in ``frame`` has made; anything else made while one runs is as it is."""
    running = [*frames(frame.f_back)]
    while capture.comprehensions and capture.comprehensions[-1].scope is capture.trace_frames[-1]:
        if any(capture.comprehensions[-1].frame is around for around in running):
            break
        clause = capture.comprehensions.pop()
        clause.older = {}
        values = clause.close(values)
        if clause.frame is frame:
            break
    return values
