"""Comprehensions over what only the graph knows the length of: a loop that stacks what the element expression gives."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from dy2st.errors import ComprehensionError
from dy2st.graph.describing import describe
from dy2st.graph.emit import emit_loop, fresh_copy
from dy2st.graph.join import numeric
from dy2st.graph.numbers import Number, number_kind, number_tensor
from dy2st.graph.rows import Rows

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture
    from dy2st.operators.iterables import StagedIterable


class Comprehension:
    """One ``for`` clause of a comprehension: its element expression is traced once, in a region of its own."""

    def __init__(self, capture: Capture, iterable: StagedIterable, frame: FrameType) -> None:
        from dy2st.operators.capture import location_of

        self.capture = capture
        self.iterable = iterable
        self.location = location_of(frame)

    def __iter__(self) -> Iterator[Any]:
        capture = self.capture
        if capture.comprehensions and capture.comprehensions[-1].scope is capture.scopes[-1]:
            self.refuse("has two clauses over tensors whose length only the graph knows")
        self.scope = capture.push(f"comprehension_{self.location.line}")
        capture.comprehensions.append(self)
        tracing = capture.tracing
        with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
            counter = torch.empty((), dtype=torch.int64)
        self.node = self.scope.region.graph.placeholder("iteration")
        tracing.track(counter, tracing.tracer.proxy(self.node))
        yield self.iterable.element(Number(counter, int))

    def refuse(self, what: str) -> None:
        """Raise the error of a comprehension that can't be staged."""
        raise ComprehensionError(
            f"a comprehension {what}",
            hint="write it as a for loop that appends to a list, then torch.stack the list",
            location=self.location,
        )

    def finish(self, values: Any) -> list[Any]:
        """The comprehension has run: emit the loop; the list that it makes."""
        capture, tracing = self.capture, self.capture.tracing
        capture.comprehensions.pop()
        if capture.scopes[-1] is not self.scope or not isinstance(values, list) or len(values) != 1:
            self.refuse("over a tensor makes something other than a list")
        (value,) = values
        if not numeric(value):
            self.refuse(f"over a tensor gives {describe(value)}")
        if self.scope.journal.old:
            self.refuse("over a tensor changes the state around it")
        body = self.scope.region
        row = fresh_copy(value if isinstance(value, torch.Tensor) else number_tensor(value))
        go = torch.full((), True, dtype=torch.bool)
        capture.pop()
        length = self.iterable.length
        trips = length.tensor if isinstance(length, Number) else length
        with tracing.at(self.location):
            _, (stack,) = emit_loop(
                tracing, capture.region, body, [self.node], trips, None, [], [go], [row], [], can_stop=False
            )
        return [Rows(stack, stack.shape[0], number_kind(value))]
