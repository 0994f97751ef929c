"""Lists whose length differs by path, or from one iteration to the next: joined as rows."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch

from dy2st.errors import ListChangeError
from dy2st.staging.lattice.join import ROWS, Incompatible, Invariant, Join, Phi, Structured, UnequalLengths
from dy2st.staging.session import Session
from dy2st.tracing.grad_mode import emitting
from dy2st.tracing.layers import Layer
from dy2st.values.container_structure import changeable
from dy2st.values.elements import Element, UnlikeElementsError, parts
from dy2st.values.journal import Slot
from dy2st.values.references import note_list, refer_to, refer_to_lists
from dy2st.values.stacked_list import StackedList, common_element, no_rows, stacked
from dy2st.values.undefined import UNSET


@dataclasses.dataclass
class Side:
    """Where one side's lists are stacked: its ``layer``; ``stores`` are what its code changed."""

    layer: Layer
    stores: dict[Slot, Any] = dataclasses.field(default_factory=dict)
    # The elements that became rows, and their rows; a list that several joins meet is stacked once.
    listed: list[tuple[list[Any], StackedList]] = dataclasses.field(default_factory=list)

    def rows(self, capture: Session, values: list[Any], element: Element) -> StackedList:
        """Elements as rows, traced on this side."""
        for known, rows in self.listed:
            same = len(known) == len(values) and all(x is y for x, y in zip(known, values, strict=True))
            if same and rows.element == element:
                return rows
        changed = {slot.identity for slot in self.stores}
        for value in values:
            note_element(capture, value, changed)
        with capture.tracing.inside(self.layer):
            made = stacked(values, element)
        self.listed.append((values, made))
        return made


def note_element(capture: Session, value: Any, changed: set[int]) -> None:
    """An element becomes a row, which is a copy: in eager a later change of the element would show in the list."""
    if isinstance(value, StackedList):
        return
    for part in parts(value):
        if isinstance(part, torch.Tensor):
            capture.aliases.shared_rows(part)
        elif id(part) in changed:
            note_list(part)
            raise ListChangeError(
                "an object is changed in the arm or loop that puts it into a list of data-dependent length",
                hint="change the object before it is put into the list, or put a copy into the list",
            ).or_else(refer_to_lists if type(part) is list else functools.partial(refer_to, part))
        elif changeable(part):
            capture.aliases.object_is_shared(part)


@emitting()
def resolved(
    capture: Session, joined: Join, sides: tuple[Side, Side], first_symbol: int, *, heads: bool = True
) -> Join:
    """A join in which lists of uneven lengths have become rows.

    ``first_symbol``: sizes from there on are known on one of the sides only. ``heads``: elements that both lists
    start with stay what they are.
    """
    if isinstance(joined, Structured):
        children = [resolved(capture, c, sides, first_symbol, heads=heads) for c in joined.children]
        return dataclasses.replace(joined, children=children)
    if not isinstance(joined, UnequalLengths):
        return joined
    try:
        return _as_rows(capture, joined, sides, first_symbol, heads)
    except UnlikeElementsError as unlike:
        other = resolved(capture, joined.otherwise(), sides, first_symbol, heads=heads)
        return (
            Incompatible(unlike.what, unlike.hint, unlike.kind, other.sides, unlike.refer)
            if isinstance(other, Incompatible)
            else other
        )


def _as_rows(
    capture: Session, uneven: UnequalLengths, sides: tuple[Side, Side], first_symbol: int, heads: bool
) -> Structured:
    lists = [value for value in (uneven.a, uneven.b) if value is not UNSET]
    head = _common_head(*lists) if heads and len(lists) == 2 else []
    tails = [UNSET if value is UNSET else value[len(head) :] for value in (uneven.a, uneven.b)]
    filled = [element for tail in tails if tail is not UNSET for element in tail]
    older = tuple(lists)
    if not filled:
        return Structured([Invariant(value) for value in head], list, (ROWS, None), older)
    element = common_element(filled)
    given = [[] if tail is UNSET else tail for tail in tails]
    found = [side.rows(capture, tail, element) if tail else None for tail, side in zip(given, sides, strict=True)]
    like = next(rows for rows in found if rows is not None)
    columns: list[list[Any]] = []
    for tail, rows, side in zip(tails, found, sides, strict=True):
        if tail is UNSET:
            columns.append([UNSET] * len(like.columns))
            continue
        if rows is not None:
            columns.append(rows.columns)
            continue
        with capture.tracing.inside(side.layer):
            sizes = [capture.tracing.sizes_outside(c.shape[1:], first_symbol) for c in like.columns]
            columns.append(no_rows(like, sizes).columns)
    leaves = [Phi(a, b, c.dtype, None) for a, b, c in zip(*columns, like.columns, strict=True)]
    count = len(head)
    return Structured(
        [*(Invariant(value) for value in head), *leaves],
        lambda made: [*made[:count], StackedList(made[count:], element)],
        (ROWS, element),
        older,
    )


def _common_head(a: list[Any], b: list[Any]) -> list[Any]:
    count = 0
    while count < min(len(a), len(b)) and a[count] is b[count]:
        count += 1
    return a[:count]


def is_rows(joined: Any) -> bool:
    """Whether an earlier join made rows of a list."""
    return isinstance(joined, Structured) and joined.signature[0] == ROWS
