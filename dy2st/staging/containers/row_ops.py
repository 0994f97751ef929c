"""What lists do with their elements, on rows: take, remove, insert, replace, slice, compare, sort.

Places are Python ints, or 0-d int64 tensors that are in range already. Everything is index arithmetic over the rows,
``index_select`` of positions: no size depends on a value, so that a list that shrinks and grows keeps sizes that
torch can reason about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from dy2st.errors import GrownListError
from dy2st.tracing.row_reads import rows_at
from dy2st.values import uneven_rows
from dy2st.values.container_structure import open_container
from dy2st.values.elements import Cell, Composite, Element, Variants, assembled, cell_list, converted
from dy2st.values.number import Number, number_kind, number_tensor, one_element, plain_number
from dy2st.values.plain_objects import is_plain_class
from dy2st.values.references import compares_itself
from dy2st.values.stacked_list import StackedList, row_list
from dy2st.values.tagged_union import TaggedUnion

Place = int | torch.Tensor


def selected(rows: StackedList, positions: torch.Tensor) -> StackedList:
    """The elements at these positions (int64 [m])."""
    if rows.uneven:
        found = uneven_rows.selected(*rows.in_a_row, positions).reshape(-1)
        sizes = rows_at(rows.held[0], positions)
        return StackedList([sizes, found], rows.element, uneven=True, rest=rows.rest)
    return StackedList([rows_at(column, positions) for column in rows.columns], rows.element)


def positions_of(rows: StackedList, more: int = 0) -> torch.Tensor:
    """0, 1, ... for each element, and for ``more`` of them (or less)."""
    return torch.arange(rows.length + more)


def element_at(rows: StackedList, place: Place) -> Any:
    """One element."""
    if isinstance(place, int) or rows.uneven:
        return rows.at(place)
    at = place.reshape(1)
    return assembled(rows.element, iter([rows_at(column, at).squeeze(0) for column in rows.columns]))


def without(rows: StackedList, place: Place) -> StackedList:
    """All elements but one."""
    if isinstance(place, int):
        if rows.uneven:
            at = positions_of(rows)
            return selected(rows, at[at != wrapped(place, number_tensor(rows.length))])
        if place == -1:
            return StackedList([column[:-1] for column in rows.columns], rows.element)
        if place == 0:
            return StackedList([column[1:] for column in rows.columns], rows.element)
        return StackedList([torch.cat([c[:place], c[place + 1 :]]) for c in rows.columns], rows.element)
    at = positions_of(rows, -1)
    return selected(rows, at + (at >= place).to(torch.int64))


def inserted(rows: StackedList, index: Any, value: Any) -> StackedList:
    """With one more element before ``index`` (int or staged int), which need not be in range."""
    both = row_list([rows, value])
    one = row_list([value], both.element)
    if isinstance(index, int):
        pairs = zip(converted(rows.columns, rows.element, both.element), one.columns, strict=True)
        return StackedList([torch.cat([c[:index], v, c[index:]]) for c, v in pairs], both.element)
    count = number_tensor(rows.length)
    at = wrapped(index, count).clamp(min=0).minimum(count)
    to = positions_of(rows, 1)
    source = torch.where(to < at, to, torch.where(to == at, count, to - 1))
    return selected(both, source)


def replaced(rows: StackedList, place: Place, value: Any) -> StackedList:
    """With another element at one place."""
    both = row_list([rows, value])
    one = row_list([value], both.element)
    count = number_tensor(rows.length)
    at = wrapped(place, count) if isinstance(place, int) else place
    here = positions_of(rows) == at
    columns = []
    for column, new in zip(converted(rows.columns, rows.element, both.element), one.columns, strict=True):
        mask = here.reshape([-1] + [1] * (column.dim() - 1)) if column.dim() > 1 else here
        columns.append(torch.where(mask, new, column))
    return StackedList(columns, both.element)


def wrapped(index: Any, count: torch.Tensor) -> torch.Tensor:
    """An index as Python counts it, negative ones from the end; not clamped."""
    if isinstance(index, int):
        return count + index if index < 0 else torch.full((), index, dtype=torch.int64)
    at = number_tensor(index).to(torch.int64)
    return torch.where(at < 0, at + count, at)


# ---- slices


def is_plain(part: slice) -> bool:
    """Whether torch's own slices can do it."""
    plain = all(p is None or isinstance(p, int) for p in (part.start, part.stop, part.step))
    return plain and (part.step is None or part.step > 0)


def sliced(rows: StackedList, part: slice) -> StackedList:
    """A slice with Python or staged bounds; the step is a Python int."""
    if rows.uneven and is_plain(part):
        return selected(rows, positions_of(rows)[part])
    if is_plain(part):
        return StackedList([column[part] for column in rows.columns], rows.element)
    if part.start is None and part.stop is None and part.step == -1 and not rows.uneven:
        return StackedList([column.flip(0) for column in rows.columns], rows.element)
    start, stop, step = bounds(part, rows)
    size = torch.clamp((stop - start + (step - (1 if step > 0 else -1))) // step, min=0)
    steps: torch.Tensor = torch.arange(Number(size, int))  # type: ignore[call-overload]
    return selected(rows, start + steps * step)


def bounds(part: slice, rows: StackedList) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Start, stop and step as ``slice.indices`` gives them."""
    step = 1 if part.step is None else part.step
    if not isinstance(step, int):
        raise GrownListError(
            "the step of a slice of a list is known only when the graph runs", hint="use a constant step"
        )
    if step == 0:
        raise ValueError("slice step cannot be zero")
    count = number_tensor(rows.length)
    least, most = (count * 0, count) if step > 0 else (count * 0 - 1, count - 1)
    start = (least if step > 0 else most) if part.start is None else _clamped(part.start, count, least, most)
    stop = (most if step > 0 else least) if part.stop is None else _clamped(part.stop, count, least, most)
    return start, stop, step


def _clamped(index: Any, count: torch.Tensor, least: torch.Tensor, most: torch.Tensor) -> torch.Tensor:
    return wrapped(index, count).maximum(least).minimum(most)


def without_slice(rows: StackedList, part: slice) -> StackedList:
    """All elements but those of a slice."""
    if part.step is None and part.start is None and is_plain(part):
        return sliced(rows, slice(part.stop, None)) if part.stop is not None else sliced(rows, slice(0, 0))
    if part.step is None and part.stop is None and is_plain(part):
        return sliced(rows, slice(None, part.start))
    start, stop, step = bounds(part, rows)
    at = positions_of(rows)
    if step < 0:
        taken = (at <= start) & (at > stop) & (torch.remainder(start - at, -step) == 0)
    else:
        taken = (at >= start) & (at < stop) & (torch.remainder(at - start, step) == 0)
    kept = torch.logical_not(taken)
    return StackedList([column[kept] for column in rows.columns], rows.element)


# ---- comparisons


def equals(rows: StackedList, value: Any) -> torch.Tensor | bool:
    """For each element whether it equals ``value``: bool [n], or False if none can."""
    found: torch.Tensor | bool = _equals(rows.element, iter(rows.columns), value)
    return found


def _equals(element: Element, columns: Any, value: Any) -> Any:
    if isinstance(element, Cell):
        column = next(columns)
        if element.rank:
            raise GrownListError(
                "a list of tensors of more than one element is searched by value",
                hint="compare the stacked tensor: (torch.stack(rows) == x).all(1)",
            )
        value = plain_number(value)
        if not isinstance(value, torch.Tensor) and number_kind(value) is None:
            return False
        return column == (one_element(value) if isinstance(value, torch.Tensor) else value)
    if isinstance(element, Composite):
        if is_plain_class(element.signature[0]) or compares_itself(element.signature[0]):
            raise GrownListError(
                "a list of objects of data-dependent length is searched",
                hint="compare one of their attributes in a loop",
            )
        opened = open_container(value)
        if opened is None or opened[2] != element.signature:
            for _ in cell_list(element):
                next(columns)
            return False
        found: Any = True
        for child, part in zip(element.children, opened[0], strict=True):
            same = _equals(child, columns, part)
            found = same if found is True else (found & same if same is not True and found is not False else found)
            found = False if same is False else found
        return found
    if isinstance(element, Variants):
        return _equals_variants(element, columns, value)
    return element.value == value


def _equals_variants(element: Variants, columns: Any, value: Any) -> Any:
    if isinstance(value, TaggedUnion):
        raise GrownListError(
            "a list whose elements are of several kinds is searched for a value that is one of several itself",
            hint="compare them in a loop",
        )
    tag, found = next(columns), False
    for number, each in enumerate(element.alternatives):
        same = _equals(each, columns, value)
        if same is not False:
            found = found | ((tag == number) & same)
    return found


def transposed(rows: StackedList) -> list[tuple[StackedList]]:
    """What ``zip`` makes of all elements, of which there is one at least: for each of their parts the parts of all.

    Raises:
        GrownListError: the elements have no parts of a known number.
    """
    element = rows.element
    if rows.uneven or not isinstance(element, Composite) or not issubclass(element.signature[0], (tuple, list)):
        raise GrownListError(
            "zip() of all elements of a list of data-dependent length, which are no tuples",
            hint="torch.stack the list, and take the columns of that: stacked.unbind(1)",
        )
    columns, found = iter(rows.columns), []
    for child in element.children:
        own = [next(columns) for _ in cell_list(child)] or [torch.zeros(rows.length, dtype=torch.int64)]
        found.append((StackedList(own, child),))
    return found


def sort_columns(keys: StackedList) -> list[torch.Tensor]:
    """The cells that decide the order, most important first; refuses what has no order."""

    def ordered(element: Element) -> bool:
        if isinstance(element, Cell):
            return element.rank == 0 and not element.dtype.is_complex
        if isinstance(element, Composite):
            return element.signature[0] in (tuple, list) or issubclass(element.signature[0], tuple)
        if isinstance(element, Variants):
            return all(isinstance(each, Cell) and each.kind in (bool, int, float) for each in element.alternatives)
        return isinstance(element.value, str)

    def all_ordered(element: Element) -> bool:
        return ordered(element) and (
            not isinstance(element, Composite) or all(all_ordered(child) for child in element.children)
        )

    if not all_ordered(keys.element):
        raise GrownListError(
            "a list of data-dependent length is sorted by something that has no order",
            hint="sort by a number, a 0-d tensor or a tuple of them: key=lambda pair: pair[0]",
        )
    # onnxruntime sorts and reduces few types.
    kept = (torch.float32, torch.float64, torch.int64)
    columns = list(_comparable(keys.element, iter(keys.columns))) or keys.columns
    wide = [torch.float32 if c.dtype.is_floating_point else torch.int64 for c in columns]
    return [c if c.dtype in kept else c.to(w) for c, w in zip(columns, wide, strict=True)]


def _comparable(element: Element, columns: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The columns of keys; numbers of several types are compared as floats."""
    if isinstance(element, Variants):
        tag, made = next(columns), None
        for number, _ in enumerate(element.alternatives):
            value = next(columns).to(torch.float64)
            made = value if made is None else torch.where(tag == number, value, made)
        assert made is not None
        yield made
    elif isinstance(element, Composite):
        for child in element.children:
            yield from _comparable(child, columns)
    elif isinstance(element, Cell):
        yield next(columns)


def sorted_order(columns: Sequence[torch.Tensor], reverse: bool) -> torch.Tensor:
    """The positions in sorted order, equal ones in their own order; the most important column comes first."""
    order: torch.Tensor | None = None
    for column in reversed(columns):
        values = column if order is None else rows_at(column, order)
        found = torch.sort(values, stable=True, descending=reverse).indices
        order = found if order is None else rows_at(order, found)
    assert order is not None
    return order


def extreme_place(keys: StackedList, name: str) -> torch.Tensor:
    """The position of the first greatest (``max``) or least (``min``) element, of which there is one at least."""
    left: torch.Tensor | None = None
    for cells in sort_columns(keys):
        column = cells
        worst = _worst(column, name)
        if column.dtype.is_floating_point:
            # Python compares one by one: NaN is never beyond, and stays if it is the first.
            column = torch.where(torch.isnan(column), torch.full_like(column, worst), column)
        values = column if left is None else torch.where(left, column, torch.full_like(column, worst))
        here = values == (values.amax(0) if name == "max" else values.amin(0))
        left = here if left is None else left & here
    assert left is not None
    found = torch.argmax(left.to(torch.int64), dim=0)
    first = sort_columns(keys)[0]
    if first.dtype.is_floating_point:
        found = torch.where(torch.isnan(first[0]), torch.zeros_like(found), found)
    return found


def _worst(column: torch.Tensor, name: str) -> Any:
    if column.dtype.is_floating_point:
        return float("-inf") if name == "max" else float("inf")
    info = torch.iinfo(column.dtype)
    return info.min if name == "max" else info.max
