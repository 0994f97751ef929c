"""Comprehensions over Python sequences with conditions that only the graph knows: ``[v for v in (a, b) if v > 0]``.

Python runs the comprehension itself and keeps every element; when the list is there, the conditions choose among its
elements, which have to be alike for that. So an element is computed whether it is kept or not, and may have no effects.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from dy2st.graph.guards import require_op
from dy2st.graph.region import written_inputs
from dy2st.graph.rows import Rows, row_list
from dy2st.operators.comprehension import Clause, first_clause
from dy2st.operators.conditions import both

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture


class NativeClause(Clause):
    """A ``for`` clause that Python runs."""

    staged = False

    def __init__(self, capture: Capture, iterable: Iterable[Any], frame: FrameType) -> None:
        super().__init__(capture, frame)
        self.iterable = iterable
        self.conditions: list[Any] = []
        self.last: fx.Node | None = None
        self.stores = 0

    def __iter__(self) -> Iterator[Any]:
        for item in self.iterable:
            self._check_element()
            self.conditions.append(True)
            yield item
        self._check_element()

    def add(self, test: torch.Tensor) -> None:
        """A condition of the element that is made now."""
        capture = self.capture
        if not any(clause is self for clause in capture.comprehensions):
            self.scope = capture.scopes[-1]
            capture.comprehensions.append(self)
        if capture.comprehensions[-1] is not self or capture.scopes[-1] is not self.scope:
            self.refuse("has clauses over a Python sequence and over a tensor")
        self.conditions[-1] = both(self.conditions[-1], test)
        self.last = next(iter(reversed(capture.region.graph.nodes)))
        self.stores = capture.touches

    def _check_element(self) -> None:
        """What was computed behind a condition runs in any case."""
        node, self.last = self.last, None
        if node is None:
            return
        if self.capture.touches > self.stores:
            self.refuse("with a condition on a tensor changes the state around it")
        made: set[fx.Node] = set()
        node = node.next
        while node.op != "root":
            written = [target for target in written_inputs(node) if target not in made]
            draws = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
            if written or draws or node.target is require_op:
                self.refuse("with a condition on a tensor has an element with effects, or one that may fail")
            made.add(node)
            node = node.next

    def close(self, values: Any) -> Any:
        """The elements whose conditions hold."""
        if not isinstance(values, list) or len(values) != len(self.conditions):
            self.refuse("with a condition on a tensor makes something other than a list, or has other conditions too")
        mask = torch.stack([torch.full((), c) if isinstance(c, bool) else c for c in self.conditions])
        kept = mask.nonzero().squeeze(1)
        rows = row_list(values)
        return [Rows([column.index_select(0, kept) for column in rows.columns], rows.element)]


def filters(test: torch.Tensor, frame: FrameType) -> bool:
    """Whether a condition has become one of the comprehension that Python runs in ``frame``."""
    clause = first_clause(frame)
    if not isinstance(clause, NativeClause):
        return False
    if any(each.opname in ("STORE_DEREF", "STORE_GLOBAL") for each in dis.get_instructions(frame.f_code)):
        clause.refuse("with a condition on a tensor assigns a variable outside of it")
    clause.add(test)
    return True
