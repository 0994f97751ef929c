"""Lists that a staged loop only appends to: the loop itself stacks what its iterations append."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from dy2st.errors import AliasError, Location
from dy2st.staging.session import Session
from dy2st.staging.unequal_lengths import note_element
from dy2st.tracing.emission import fresh_copy
from dy2st.tracing.graph_ops import SizeTable
from dy2st.tracing.subgraph import Subgraph, storage_key
from dy2st.tracing.tracer import same_size
from dy2st.values.elements import Cell, Element, UnlikeElementsError, cell_shapes, cell_values, cells, parts
from dy2st.values.journal import Slot
from dy2st.values.stacked_list import StackedList, common_element, constant_rest, row_list, size_row


@dataclasses.dataclass
class StackedOutput:
    """A list that the body appends to: ``before`` the loop, and what is appended in one iteration.

    As long as the body does not read the list, the appended rows are stacked by the loop itself; otherwise, or when
    the number of rows differs from one iteration to the next, they are carried as tensors that grow. Where their sizes
    do, they are ``uneven``: a tensor of all their numbers grows, and their sizes are stacked.
    """

    before: list[Any]
    appended: list[Any]
    element: Element
    # One row of each column, as metadata.
    like: list[torch.Tensor]
    read: bool = False
    uneven: bool = False

    @classmethod
    def of(
        cls, capture: Session, before: list[Any], appended: list[Any], location: Location, first: int
    ) -> StackedOutput:
        """A list that one iteration extends by ``appended``; raises what says that this can't be staged.

        Sizes that are another one in each iteration have symbols from number ``first`` on.
        """
        try:
            element = common_element(appended)
        except UnlikeElementsError as unlike:
            what = f"a loop appends to a list: {unlike.what}"
            raise unlike.kind(what, hint=unlike.hint, location=location).or_else(unlike.refer) from None
        if _are_uneven(capture, appended, element, first):
            with capture.tracing.untraced():
                flat = torch.empty([], dtype=appended[0].dtype)
            return cls(before, appended, element, [flat], uneven=True)
        with capture.tracing.untraced():
            if any(isinstance(each, StackedList) for each in appended):
                shapes = [tuple(c.shape[1:]) for c in row_list(appended, element).columns]
            else:
                shapes = cell_shapes(appended[0], element) or [()]
            like = [torch.empty(s, dtype=c.dtype) for s, c in zip(shapes, cells(element), strict=True)]
        return cls(before, appended, element, like)

    @property
    def fixed(self) -> bool:
        """Whether every iteration appends the same number of rows."""
        return not any(isinstance(v, StackedList) for v in self.appended)

    @property
    def carried(self) -> bool:
        """Whether the rows so far are state of the loop."""
        return self.read or not self.fixed or self.uneven

    def signature(self) -> Any:
        """What must be the same in the next run of the body for the state to be stable."""
        return ("stacked", len(self.appended), self.fixed, self.read, self.uneven, self.element)

    def so_far(
        self, capture: Session, table: SizeTable, placeholder: Callable[[torch.Tensor, str], Any]
    ) -> StackedList:
        """The rows appended by earlier iterations, as placeholders of the body."""
        tracing = capture.tracing
        columns = []
        for like in self.like:
            with tracing.shape_env.ignore_fresh_unbacked_symbols(), tracing.untraced():
                value = torch.empty([table.size(("rows", id(self))), *like.shape], dtype=like.dtype)
            columns.append(placeholder(value, "rows"))
        return StackedList(columns, self.element, uneven=self.uneven)

    def grown(self, so_far: StackedList) -> list[torch.Tensor]:
        """The rows at the end of an iteration; traced in the body."""
        if self.uneven:
            return [torch.cat([so_far.held[0], *(value.reshape(-1) for value in self.appended)])]
        return row_list([so_far, *self.appended], self.element).columns

    def sizes(self) -> torch.Tensor:
        """The sizes of what an iteration appends, which the loop stacks: int64 [count, rank]; traced in the body."""
        return fresh_copy(torch.cat([size_row(value) for value in self.appended]))

    def with_sizes(self, flat: torch.Tensor, sizes: torch.Tensor) -> list[Any]:
        """The list after the loop, where it is uneven."""
        rest = constant_rest(self.appended[0]) if len(self.appended) == 1 else None
        return [*self.before, StackedList([sizes.flatten(0, 1), flat], self.element, uneven=True, rest=rest)]

    def rows(self) -> list[torch.Tensor]:
        """What the loop is to stack of one iteration, for each column; traced in the body."""
        found = [cell_values(value, self.element) for value in self.appended]
        return [fresh_copy(c[0] if len(c) == 1 else torch.stack(c)) for c in zip(*found, strict=True)]

    def result(self, stacks: list[torch.Tensor]) -> list[Any]:
        """The list after the loop."""
        columns = [stack.flatten(0, 1) for stack in stacks] if len(self.appended) > 1 else stacks
        return [*self.before, StackedList(columns, self.element)]

    def check(self, capture: Session, body: Subgraph, stores: dict[Slot, Any], location: Location) -> None:
        """A row is a copy; in eager it is the element itself, which must not change afterwards."""
        check_not_written(self.appended, body, location)
        changed = {slot.identity for slot in stores}
        for value in self.appended:
            note_element(capture, value, changed)


def _are_uneven(capture: Session, appended: list[Any], element: Element, first: int) -> bool:
    """Whether an iteration appends plain tensors whose sizes are others in the next one, or among themselves."""
    if not isinstance(element, Cell) or not all(isinstance(value, torch.Tensor) for value in appended):
        return False
    if any(capture.tracing.is_younger(size, first) for value in appended for size in value.shape):
        return True
    shapes = zip(*(value.shape for value in appended), strict=True)
    return any(not same_size(sizes[0], size) for sizes in shapes for size in sizes[1:])


def check_not_written(elements: list[Any], body: Subgraph, location: Location) -> None:
    """Refuse elements that a loop's body changes in place."""
    written = body.written_outside()
    for element in elements:
        for value in parts(element):
            if isinstance(value, torch.Tensor) and storage_key(value) in written:
                raise AliasError(
                    "a tensor is appended to a list in a loop that changes it in place",
                    hint="append tensor.clone(), or compute a new tensor (h = h + 1 in place of h += 1)",
                    location=location,
                )
