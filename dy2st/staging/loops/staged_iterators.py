"""Iterators over what has a data-dependent length: ``iter``, ``enumerate``, ``zip``, ``reversed``, ``map``.

Each element is given once, so an iterator has a place: how many were taken by ``next``, and whether a loop has gone
over the rest. That is state like any other, journalled and carried.

    found = iter(found)
    total = next(found)
    for n, value in enumerate(found, 2):
        total = total + value

How many a loop takes that is left half-way, is not known. So what has been gone over is not used again.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import torch

from dy2st.errors import DynamicLengthError, GeneratorError
from dy2st.plan import plan
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.conditions import condition, require
from dy2st.staging.loops.iterables import StagedIterable, as_iterable, at_least_zero, indexable, shorter
from dy2st.staging.session import MODE
from dy2st.tracing.tracer import same_size
from dy2st.values.journal import Slot
from dy2st.values.number import Number, number_kind, number_tensor


class StagedIterator(StagedIterable):
    """An iterator of Python's, called ``name``, over ``parts``; ``make`` puts what it goes over together from them."""

    def __init__(self, name: str, parts: Iterable[StagedIterable], make: Callable[..., StagedIterable]) -> None:
        self.name, self.parts, self.make = name, [*parts], make
        self.nested = any(isinstance(part, StagedIterator) for part in self.parts)
        # How many elements ``next`` has taken, and whether a loop has gone over the others.
        self.place: Any = 0
        self.gone_over: Any = False
        # The lists that it goes over as they were: an iterator of Python's sees what is appended later.
        self.lists: list[tuple[list[Any], list[Any]]] = []
        if not self.nested:
            self.whole = make(*self.parts)
            self.what = self.whole.what
        else:
            self.what = f"an iterator ({name})"
        if MODE.capture is not None:
            MODE.capture.new(self)

    @property
    def length(self) -> Any:
        """How many elements are left."""
        return at_least_zero(self.whole.length - self.place)

    @property
    def element(self) -> Callable[[Any], Any]:  # type: ignore[override]
        """What gives one of those."""
        place, whole = self.place, self.whole
        return lambda index: whole.element(index + place)

    def _part(self, part: slice) -> StagedIterable:  # noqa: ARG002
        """An iterator of Python's has none."""
        raise TypeError(f"'{self.name}' object is not subscriptable")

    def watching(self, *owners: Any) -> StagedIterator:
        """It goes over these, some of which may be lists."""
        self.lists = [(owner, list(owner)) for owner in owners if isinstance(owner, list)]
        return self

    def begin(self) -> StagedIterable:
        """All that is left, of which nothing is left then."""
        self._check()
        if self.nested:
            self.whole = self.make(*(part.begin() for part in self.parts))
        place = self.place
        rest = StagedIterable(self.length, self.element, self.what, self.whole.check)
        left = self.whole if _is_zero(place) else rest
        self._store("gone_over", True)
        return left

    def taken(self) -> tuple[Any, Callable[[], Any]]:
        """Whether there is a next element, and what takes it."""
        self._check()
        if self.nested:
            raise GeneratorError(
                f"next() of {self.what} over an iterator of data-dependent length",
                hint="take the elements by a for statement, or of the iterator inside",
                location=location_of(users_frame()),
            )
        place, there = self.place, condition(self.whole.length > self.place)

        def take() -> Any:
            self._store("place", place + 1)
            if there is True:
                return self.whole.element(place)
            assert MODE.capture is not None
            return self.whole.element(Number(MODE.capture.guards.after(number_tensor(place)), int))

        return there, take

    def _store(self, name: str, value: Any) -> None:
        assert MODE.capture is not None
        MODE.capture.store(Slot.of("attribute", self, name), value)

    def _check(self) -> None:
        if self.gone_over is not False:
            self._refuse("a loop may have taken all elements of an iterator before this use of it")
        if any(len(owner) != len(old) or any(map(operator.is_not, owner, old)) for owner, old in self.lists):
            self._refuse("a list is changed while an iterator goes over it")

    def _refuse(self, what: str) -> NoReturn:
        raise GeneratorError(
            f"{what}, and its length is data-dependent",
            hint="make the iterator where it is used, or keep its elements in a list: rows = list(...)",
            location=location_of(users_frame()),
        )

    def __getitem__(self, index: Any) -> Any:
        raise TypeError(f"{self.name!r} object is not subscriptable")


def _is_zero(place: Any) -> bool:
    return isinstance(place, int) and place == 0


def staged_iter(iterable: Any) -> Any:
    """``iter`` of a staged iterable."""
    inner = as_iterable(iterable)
    if inner is None or isinstance(inner, StagedIterator):
        return inner
    return StagedIterator("iterator", [inner], lambda it: it).watching(iterable)


def staged_enumerate(iterable: Any, start: Any = 0) -> Any:
    """``enumerate`` of a staged iterable."""
    inner = as_iterable(iterable)
    if inner is None and number_kind(start) is not None and isinstance(start, int):
        return None
    if inner is None:
        inner = indexable(iterable)
    if inner is None:
        return None

    from_zero = isinstance(start, int) and start == 0

    def make(it: StagedIterable) -> StagedIterable:
        pair = lambda i: (i if from_zero else i + start, it.element(i))  # noqa: E731
        return StagedIterable(it.length, pair, "an enumeration", it.check)

    return StagedIterator("enumerate", [inner], make).watching(iterable)


def staged_zip(*iterables: Any, strict: bool = False) -> Any:
    """``zip`` some of whose arguments are staged iterables; if ``strict``, they have to have one length."""
    if not any(as_iterable(i) is not None for i in iterables):
        return None
    inner = _indexable("zip", iterables)
    for other in inner[1:] if strict else ():
        if not same_size(inner[0].length, other.length):
            require(inner[0].length == other.length, ValueError, "zip() arguments are of different lengths")
    return StagedIterator("zip", inner, lambda *its: _together(its, tuple, "a zip")).watching(*iterables)


def staged_map(function: Callable[..., Any], *iterables: Any) -> Any:
    """``map`` over staged iterables: the function is called where an element is taken."""
    if not any(as_iterable(i) is not None for i in iterables):
        return None
    return StagedIterator(
        "map", _indexable("map", iterables), lambda *its: _together(its, lambda given: function(*given), "a map")
    ).watching(*iterables)


def _indexable(name: str, iterables: Iterable[Any]) -> list[StagedIterable]:
    found = [indexable(each) for each in iterables]
    if any(each is None for each in found):
        raise DynamicLengthError(
            f"{name}() of a tensor of dynamic length with a Python iterable",
            hint="stack the Python values into a tensor, or give the tensor a static length",
        ).or_else(functools.partial(_gather, iterables))
    return [each for each in found if each is not None]


def _gather(iterables: Iterable[Any]) -> None:
    """The generators among them are gathered, in another attempt."""
    for each in iterables:
        if isinstance(each, types.GeneratorType):
            plan().gather(each.gi_code)


def _together(inner: tuple[StagedIterable, ...], made: Callable[[tuple[Any, ...]], Any], what: str) -> StagedIterable:
    length: Any = inner[0].length
    for other in inner[1:]:
        length = shorter(length, other.length)

    def check() -> None:
        for each in inner:
            each.check()

    return StagedIterable(length, lambda i: made(tuple([each.element(i) for each in inner])), what, check)


def staged_reversed(iterable: Any) -> Any:
    """``reversed`` of a staged iterable."""
    # Tensor.__reversed__ makes a tensor of its own.
    if isinstance(iterable, torch.Tensor):
        inner = as_iterable(iterable.clone())
        return None if inner is None else _backwards(inner)
    inner = as_iterable(iterable)
    if inner is None:
        return None
    return StagedIterator("reversed", [inner], _backwards).watching(iterable)


def _backwards(inner: StagedIterable) -> StagedIterable:
    return StagedIterable(inner.length, lambda i: inner.element(inner.length - 1 - i), "a reversal")
