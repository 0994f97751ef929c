"""Generators that yield where only the graph decides: what they yield is gathered before their consumer goes over it.

    def neighbours(i, j, grid):
        for p, q in ((i + 1, j), (i, j + 1)):
            if grid[p, q] > 0:
                yield p, q

A branch or loop of the graph can't be left for the consumer's code and come back to. So the generator runs to its end,
and its elements are a list that a branch or loop appends to. Eager runs the two in turns. That makes no difference
as long as neither changes what the other one may see: it is refused else.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import torch

from dy2st.errors import GeneratorError, StagingError
from dy2st.operators.export_session import current
from dy2st.plan import plan
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.case_distribution import iterated
from dy2st.staging.loops.iterables import StagedIterable, as_iterable
from dy2st.staging.loops.staged_iterators import StagedIterator
from dy2st.staging.memory.heap import (
    attributes,
    elements,
    held_by_function,
    is_closed,
    is_filled,
    is_machinery,
    named_globals,
    names_in,
    walk,
)
from dy2st.staging.session import Session

_HINT = "append to a list in place of yielding, and return the list"


class Gathering:
    """The generators that are being gathered, by their frames, each with the list of what it has yielded."""

    def __init__(self) -> None:
        self.rows: dict[FrameType, list[Any]] = {}


def is_gathered(frame: FrameType) -> bool:
    """Whether this is the frame of a generator that is being gathered."""
    return frame in current().part(Gathering).rows


def gathering(capture: Session, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``; a generator that it returns is gathered, if the plan says so."""
    if not plan().gathered:
        return function

    def run(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        gathers = isinstance(made, types.GeneratorType) and plan().gathers(made.gi_code)
        return _gathered(capture, made, made.gi_frame) if gathers else made

    return run


def _gathered(capture: Session, generator: Any, frame: FrameType) -> Any:
    """An iterator over all that a generator yields."""
    rows: list[Any] = capture.new([])
    seen = _Seen(capture, generator, frame)
    open_ones = current().part(Gathering).rows
    open_ones[frame] = rows
    try:
        for value in generator:
            capture.call(rows.append)(value)
            seen.hand_on(value)
    finally:
        del open_ones[frame]
    seen.check("a generator changes what it is given or refers to")
    inner = as_iterable(rows)
    return _checked(rows, seen) if inner is None else _GatheredIterator(inner, seen)


def gathered_from(frame: FrameType, iterable: Any) -> Any:
    """``yield from`` in a generator: what is left for Python to go over."""
    capture = current().capture
    if as_iterable(iterable) is None or capture is None:
        return iterable
    if not is_gathered(frame):
        raise not_gathered("a generator yields from what has a data-dependent length", frame)
    capture.call(current().part(Gathering).rows[frame].extend)(iterable)
    return ()


def begun(capture: Session, iterable: Any) -> Any:
    """What a loop goes over that begins now: an object whose ``__iter__`` is such a generator is gathered."""
    iterable = iterated(capture, iterable)
    method = getattr(type(iterable), "__iter__", None)
    return gathering(capture, iter)(iterable) if plan().gathers(getattr(method, "__code__", None)) else iterable


def not_gathered(what: str, frame: FrameType) -> StagingError:
    """Why a generator that is not gathered has to be, which another attempt may do."""
    error = GeneratorError(what, hint=_HINT, location=location_of(frame))
    return error.or_else(functools.partial(plan().gather, frame.f_code))


class _Seen:
    """All that a generator may see of what others may change, as it was."""

    def __init__(self, capture: Session, generator: Any, frame: FrameType) -> None:
        self.capture, self.location = capture, location_of(users_frame())
        given = tuple(frame.f_locals.values())
        known = frame.f_globals
        names = [name for name in names_in(frame.f_code) if name in known]
        edges = (attributes, elements, held_by_function, named_globals)
        found = list(walk((*given, *(known[name] for name in names)), edges, _leads_nowhere))
        functions = [each for each in found if isinstance(each, types.FunctionType)]
        # By identity, an object and how often it had been changed; by storage, how often that had been written to.
        self.objects: dict[int, tuple[Any, int]] = {}
        self.storages: dict[int, int] = {}
        self.tensors: list[torch.Tensor] = []
        self._add(found)
        variables = [(known, name) for name in names]
        variables += [(each.__globals__, name) for each in functions for name in names_in(each.__code__)]
        self.variables = [(space, name, space.get(name)) for space, name in variables]
        cells = [cell for each in functions for cell in each.__closure__ or ()] + _cells_of(generator, frame)
        self.cells = [(cell, cell.cell_contents) for cell in cells if is_filled(cell)]

    def hand_on(self, value: Any) -> None:
        """The loop gets ``value``, which the generator may change afterwards."""
        self._add(walk([value], (attributes, elements), _leads_nowhere))

    def _add(self, found: Iterable[Any]) -> None:
        """Objects, with their classes; an iterator that goes on is none of the loop's any more."""
        aliases, touches = self.capture.aliases, self.capture.touches
        for each in found:
            if isinstance(each, torch.Tensor):
                self.tensors.append(each)
                for storage in aliases.reach(each):
                    self.storages.setdefault(storage, aliases.writes[storage])
            elif not isinstance(each, StagedIterator):
                kind = each if isinstance(each, type) else type(each)
                for owner in (each, *kind.__mro__):
                    self.objects.setdefault(id(owner), (owner, touches[id(owner)]))

    def check(self, what: str = "what a generator may see is changed while a loop goes over what it yields") -> None:
        """Refuse to go on if any of that has changed.

        Raises:
            GeneratorError: at the line that calls the generator.
        """
        aliases, touches = self.capture.aliases, self.capture.touches
        reached = {storage for each in self.tensors for storage in aliases.reach(each)}
        same = (
            all(space.get(name) is value for space, name, value in self.variables)
            and all(is_filled(cell) and cell.cell_contents is value for cell, value in self.cells)
            and all(touches[each] == count for each, (_, count) in self.objects.items())
            and all(aliases.writes[each] == self.storages.get(each, 0) for each in reached)
        )
        if not same:
            told = f"{what}, and it yields under a tensor condition"
            raise GeneratorError(told, hint=_HINT, location=self.location)


def _cells_of(generator: Any, frame: FrameType) -> list[types.CellType]:
    """The variables of the code around a generator that has not begun, which stand behind its own."""
    cells = [each for each in gc.get_referents(generator) if isinstance(each, types.CellType)]
    return cells[len(cells) - len(frame.f_code.co_freevars) :]


def _leads_nowhere(value: Any) -> bool:
    return is_closed(value) or is_machinery(value)


def _checked(rows: Iterable[Any], seen: _Seen) -> Any:
    for each in rows:
        yield each
        seen.check()


class _GatheredIterator(StagedIterator):
    """What stands for a generator."""

    def __init__(self, rows: StagedIterable, seen: _Seen) -> None:
        def element(index: Any) -> Any:
            seen.check()
            return rows.element(index)

        super().__init__("generator", [StagedIterable(rows.length, element, rows.what, seen.check)], lambda it: it)
