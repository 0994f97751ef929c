"""Iterables whose length is known only when the graph runs: ranges, rows of a tensor, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import torch

from dy2st.errors import DynamicLengthError, StagedNumberError
from dy2st.staging.branches.case_distribution import can_be_iterated, iterated
from dy2st.staging.conditions import require
from dy2st.staging.session import MODE, Session
from dy2st.tracing.row_reads import rows_at
from dy2st.tracing.tracer import at_least, same_size
from dy2st.values.container_structure import Listed, changeable
from dy2st.values.counter_bounds import Origin
from dy2st.values.elements import parts
from dy2st.values.number import Number, number_kind, number_tensor, symbolic
from dy2st.values.stacked_list import has_rows, row_list
from dy2st.values.tagged_union import TaggedUnion, cases_of


class StagedIterable:
    """An iterable of ``length`` elements (int, symbolic int or staged int), each of which its index gives."""

    # What stands for it in eager, where that is of one class of Python's.
    kind: type | None = None

    def __init__(
        self, length: Any, element: Callable[[Any], Any], what: str, check: Callable[[], None] = lambda: None
    ) -> None:
        self.length = length
        self.element = element
        self.what = what
        # What is asked after each iteration: whether there may be elements that are not known yet.
        self.check = check

    def begin(self) -> StagedIterable:
        """What a loop goes over that begins now."""
        return self

    def refuse(self, question: str) -> None:
        """A question that this answers in another way than what it stands for."""
        raise DynamicLengthError(
            f"{question} of {self.what}, whose length is known only when the graph runs",
            hint="iterate over it with a for statement in converted code",
        )

    def __iter__(self) -> Any:
        raise DynamicLengthError(
            f"{self.what} has a length that is known only when the graph runs, and is iterated by code that dy2st does "
            "not convert",
            hint="iterate it with a for statement in converted code",
        )

    def __len__(self) -> int:
        raise DynamicLengthError(
            f"the length of {self.what} is known only when the graph runs",
            hint="iterate over it with a for statement in converted code, which needs no length",
        )

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        if number_kind(index) not in (int, bool):
            raise DynamicLengthError(
                f"a part of {self.what}, whose length is known only when the graph runs",
                hint="slice the tensor before it is taken apart, or choose other bounds of the range",
            )
        return self.element(self._from_the_start(index))

    def _part(self, part: slice) -> StagedIterable:
        """A slice: the elements whose places it leaves of all."""
        if part.step is not None and (not isinstance(part.step, int) or part.step < 0):
            self.refuse("a slice with such a step")
        places: torch.Tensor = torch.arange(symbolic(self.length))[part]

        def element(i: Any) -> Any:
            place = rows_at(places, number_tensor(i).to(torch.int64).reshape(1)).reshape(())
            return self.element(Number(place, int))

        return type(self)(places.shape[0], element, self.what)

    def at(self, counter: torch.Tensor) -> Any:
        """The element of the iteration that ``counter`` counts, from 0 on, int64, 0-d."""
        known = None if isinstance(self.length, Number) else Origin(counter, below=self.length)
        return self.element(Number(counter, int, known))

    def _from_the_start(self, index: Any) -> Any:
        """An index that counts from the start; eager raises where there is none."""
        if isinstance(index, int):
            require(self.length > index if index >= 0 else self.length >= -index)
            return index if index >= 0 else self.length + index
        require(index < self.length)
        if isinstance(index, Number) and index.known.not_negative():
            return index
        require(index >= -self.length)
        return index + (index < 0) * self.length


def at_least_zero(length: Any) -> Any:
    """A trip count, never negative."""
    if isinstance(length, int):
        return max(0, length)
    if isinstance(length, torch.SymInt):
        if at_least(-length, 0):
            return 0
        return length if at_least(length, 0) else torch.sym_max(0, length)
    return Number(torch.clamp(length.tensor, min=0), int)


def staged_range(*arguments: Any) -> Any:
    """``range`` with symbolic or staged bounds."""
    plain: list[Any] = [Number(a.to(torch.int64), int) if isinstance(a, torch.Tensor) else a for a in arguments]
    if all(isinstance(a, int) for a in plain):
        return range(*plain)
    start, stop, step = (0, plain[0], 1) if len(plain) == 1 else [*plain, 1][:3]
    if not isinstance(step, int):
        raise StagedNumberError(
            "the step of a range is known only when the graph runs",
            hint="use a constant step, or a while loop",
        )
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    span = stop - start if step > 0 else start - stop
    size = abs(step)
    length = at_least_zero(span if size == 1 else (span + (size - 1)) // size)
    return StagedIterable(length, lambda i: _at(start, i if step == 1 else i * step), "a range")


def _at(start: Any, offset: Any) -> Any:
    return offset if isinstance(start, int) and start == 0 else start + offset


def has_dynamic_length(tensor: torch.Tensor) -> bool:
    """Whether the number of rows of a tensor is data-dependent."""
    return not isinstance(tensor.shape[0], int)


def staged_rows(tensor: torch.Tensor) -> StagedIterable:
    """The rows of a tensor."""
    return StagedIterable(tensor.shape[0], lambda i: tensor[i], "a tensor")


class ProgressBar:
    """What stands for a progress bar around an iterable: a graph has nothing to show it on. It has no counters."""

    def __init__(self, iterable: Any = None) -> None:
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to take away."""

    def update(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing is shown."""

    set_description = set_description_str = set_postfix = set_postfix_str = update
    refresh = display = clear = reset = unpause = moveto = close = update


def as_iterable(value: Any) -> StagedIterable | None:
    """A staged iterable for what can't be iterated in Python, else None."""
    if isinstance(value, ProgressBar):
        return as_iterable(value.iterable)
    if isinstance(value, StagedIterable):
        return value
    if isinstance(value, torch.Tensor) and value.dim() > 0 and has_dynamic_length(value):
        return staged_rows(value)
    if isinstance(value, Listed):
        found, check = as_iterable(value.listed()), value.watch()
        return _checked(found, check) if type(found) is StagedIterable else found
    if has_rows(value):
        rows = row_list(value)
        return StagedIterable(rows.length, lambda i: noted(rows.at(i)), "a list that grew in a loop")
    return None


def gone_over(capture: Session, value: Any) -> Any:
    """What is iterated, but by a ``for`` statement: one thing, or several of which Python knows the lengths."""
    if isinstance(value, dict):
        return iterated(capture, value)
    value = can_be_iterated(capture, value)
    several = isinstance(value, TaggedUnion) and any(as_iterable(case) is not None for case in cases_of(value))
    return iterated(capture, value) if several else value


def _checked(elements: StagedIterable, check: Callable[[], None]) -> StagedIterable:
    """The same, asking for each element whether they are still what they were."""

    def element(i: Any) -> Any:
        check()
        return elements.element(i)

    return StagedIterable(elements.length, element, elements.what)


def noted(element: Any) -> Any:
    """An element of rows: a copy of what eager has in the list, so that it may be read, but not changed."""
    capture = MODE.capture
    if capture is not None:
        for part in parts(element):
            if isinstance(part, torch.Tensor):
                capture.aliases.shared_rows(part)
            elif changeable(part):
                capture.aliases.object_is_shared(part)
    return element


def indexable(value: Any) -> StagedIterable | None:
    """A staged view of an iterable of known length that can be indexed by a staged int, else None."""
    found = as_iterable(value)
    if found is not None:
        return found
    if isinstance(value, ProgressBar):
        return indexable(value.iterable)
    if isinstance(value, range):
        return StagedIterable(len(value), lambda i: value.start + i * value.step, "a range")
    if isinstance(value, torch.Tensor) and value.dim() > 0:
        return staged_rows(value)
    if isinstance(value, (list, tuple)) and value:
        rows = row_list(value)
        return StagedIterable(rows.length, lambda i: noted(rows.at(i)), "a list")
    return None


def shorter(a: Any, b: Any) -> Any:
    """The smaller of two lengths."""
    if isinstance(a, Number) or isinstance(b, Number):
        return Number(torch.minimum(number_tensor(a), number_tensor(b)), int)
    if same_size(a, b):
        return a
    return torch.sym_min(a, b)
