"""``<``, ``<=``, ``>`` and ``>=`` of lists and tuples with what is known only when the graph runs.

The first elements that are not equal decide; where there are none, the lengths do. Python takes a bool of each pair,
and the length of a list for the number of the objects in it. An object of a dataclass with ``order=True`` is compared
as the tuple of its fields.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dy2st.errors import GrownListError
from dy2st.staging.conditions import both, condition, either, negated, truth_number
from dy2st.staging.containers.equality import are_staged, compared_fields, compared_rows, same_elements
from dy2st.tracing.row_reads import rows_at
from dy2st.values.describing import describe
from dy2st.values.number import number_tensor
from dy2st.values.stacked_list import StackedList, has_rows, row_list

Compare = Callable[[Any, Any], Any]
_KINDS = (list, tuple, collections.deque)


def are_sequences(a: Any, b: Any) -> bool:
    """Whether two values are lists, or tuples, or deques, that may have something data-dependent in them."""
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in _KINDS)


def fields_of(a: Any, b: Any) -> list[tuple[Any, ...]] | None:
    """What two objects of a dataclass are ordered by, if ``dataclasses`` has written how."""
    names = compared_fields(a, b, "__lt__")
    return None if names is None else [tuple(getattr(each, name) for name in names) for each in (a, b)]


def order_of(a: Sequence[Any], b: Sequence[Any], compare: Compare) -> Any:
    """``compare(a, b)`` of two such: a bool, or staged.

    Raises:
        GrownListError: the length of one is data-dependent, and there are others than numbers of one kind; or elements
            that have no order are compared on some paths.
    """
    if a is not b and (has_rows(a) or has_rows(b)):
        return _of_rows(a, b, compare)
    open_pairs: list[tuple[Any, Any]] = []
    for one, other in zip(a, b, strict=False):
        if one is other:
            continue
        same = condition(same_elements(one, other) if are_staged(one, other) else one == other)
        if same is True:
            continue
        found = _of_elements(one, other, compare, open_pairs)
        if same is False:
            break
        open_pairs.append((same, found))
    else:
        found = condition(compare(len(a), len(b)))
    for same, decided in reversed(open_pairs):
        found = either(both(same, found), both(negated(same), decided))
    return truth_number(found)


def _of_elements(one: Any, other: Any, compare: Compare, before: Sequence[Any]) -> Any:
    """The order of two elements, as a condition."""
    try:
        return condition(order_of(one, other, compare) if are_sequences(one, other) else compare(one, other))
    except TypeError:
        if not before:
            raise
        raise GrownListError(
            f"{describe(one)} and {describe(other)} are compared if what stands before them in two lists or tuples is "
            "equal, which is data-dependent",
            hint="compare the first elements by themselves, or give the others an order",
        ) from None


def _of_rows(a: Sequence[Any], b: Sequence[Any], compare: Compare) -> Any:
    if len(a) == 0 or len(b) == 0:
        one, other = (row_list(each).length if len(each) else 0 for each in (a, b))
        return truth_number(condition(compare(one, other)))
    one, other = compared_rows(a, b)
    columns = [_padded(rows, beside) for rows, beside in ((one, other), (other, one))]
    numbers = torch.arange(columns[0].shape[0])
    there = torch.logical_and(numbers < number_tensor(one.length), numbers < number_tensor(other.length))
    differ = torch.logical_and(columns[0] != columns[1], there)
    place = differ.to(torch.int64).argmax(0)
    first = [rows_at(column, place.reshape(1)).reshape(()) for column in columns]
    lengths = condition(compare(one.length, other.length))
    decided = torch.where(differ.any(), compare(*first), torch.as_tensor(lengths))
    return truth_number(decided)


def _padded(rows: StackedList, beside: StackedList) -> torch.Tensor:
    """The numbers, and zeros so that two columns are as long as each other, and not empty."""
    more = [torch.zeros_like(beside.stack, dtype=rows.stack.dtype), torch.zeros([1], dtype=rows.stack.dtype)]
    return torch.cat([rows.stack, *more])
