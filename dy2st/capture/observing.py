"""Which ways eager code takes at the places where a program's paths part.

The converted model runs eagerly, its callees converted too, with the operators that ask a condition exchanged for ones
that remember the answer. While nothing is observed the operators are the plain ones: observation costs nothing then.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

import torch

from dy2st import operators
from dy2st.calls.call_conversion import followed, run_forward
from dy2st.calls.class_calls import ConvertedClasses
from dy2st.errors import Location
from dy2st.operators.branch import NOT_TAKEN, TAKEN
from dy2st.operators.calls import EAGER_FORMS
from dy2st.operators.logic import PythonLazy
from dy2st.operators.loops import PYTHON_LOOP, PythonLoop
from dy2st.operators.torch_forms import use_forms
from dy2st.source.rewriting import rewrite
from dy2st.source.user_frames import is_ours, location_of
from dy2st.staging.branches.staged_logic import is_truth
from dy2st.staging.memory.heap import CACHED
from dy2st.staging.routes import Copy, numbered, route_to
from dy2st.staging.sites import ALL_TRIPS, ARMS, DECIDES, TRIPS, UNDECIDED, site_of

OBSERVED = ("if_", "loop", "call", "lazy_and", "lazy_or")
# Whose methods are something else under a capture.
STAGED_METHODS = (contextlib.ExitStack, contextvars.ContextVar, torch.Tensor, list, collections.deque, dict, str)


class Listener:
    """What an observer tells of every question; this one is told nothing."""

    def branch(self, site: Copy, way: str) -> None:
        """An ``if`` has gone one way."""

    def operand(self, site: Copy, *, right: bool, decides: bool) -> None:
        """The truth of an operand of an ``and`` or ``or`` was asked: whether it decides."""

    def test(self, site: Copy, trips: int, going: bool) -> None:
        """The test of a loop that has made ``trips`` trips was asked."""

    def ended(self, site: Copy, trips: int) -> None:
        """A loop has ended after ``trips`` trips."""

    def number(self, function: Any) -> Any:
        """What is called in place of ``int`` and ``float``."""
        return function


class Observer:
    """What was seen: the ways taken, by construct. It stands for a capture where callees are converted."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.taken: dict[Copy, set[str]] = {}
        self.thread = threading.get_ident()
        self.running: set[ObservedLoop] = set()
        self._places: dict[tuple[CodeType, int], Location] = {}
        self._visits: Counter[Any] = Counter()
        # What ``followed`` asks of a capture; nothing is staged, and nothing is recorded for the sake of staging.
        self.depth = 1
        self.overloads: dict[Any, Any] = {}
        self.classes = ConvertedClasses()
        self.convert_class = self.classes.convert
        self.looked_through: dict[int, Any] = {}
        self.aliases = SimpleNamespace(any_alike=lambda: False)
        self.constants = SimpleNamespace(by_case=lambda _arguments: None)
        self.advances = SimpleNamespace(watched=lambda value: value, noted=lambda value: value)
        self.touch = self.new = lambda value: value
        self.refuse_change = lambda _owner, _what: None

    def note(self, site: Copy, way: str) -> None:
        """A construct goes one way."""
        self.taken.setdefault(site, set()).add(way)

    def place(self, frame: FrameType) -> Location:
        """The place of the operator that a frame is calling."""
        key = frame.f_code, frame.f_lasti
        if is_ours(frame.f_code.co_filename):  # it stands for a function of torch's, wherever that is called
            return location_of(frame)
        if key not in self._places:
            self._places[key] = location_of(frame)
        return self._places[key]

    def copy_at(self, location: Location, frame: FrameType, kind: str) -> Copy:
        """The construct that a frame is about to run, and the way to it."""
        site = site_of(location, kind)
        return *site, numbered(self._visits, site, route_to(frame))

    # ---- in place of the operators

    def if_(self, test: Any, *names: str) -> Any:  # noqa: ARG002  # as the operator
        """``if``: its test is asked once, here."""
        then = True if test else False  # noqa: SIM210  # as the operator
        if threading.get_ident() == self.thread:
            frame = sys._getframe(1)
            site, way = self.copy_at(self.place(frame), frame, "if"), ARMS[0] if then else ARMS[1]
            self.note(site, way)
            self.listener.branch(site, way)
        return TAKEN if then else NOT_TAKEN

    def loop(self, *names: str, targets: tuple[str, ...] = (), yields: bool = False) -> Any:  # noqa: ARG002
        """A loop that counts its trips."""
        if threading.get_ident() != self.thread:
            return PYTHON_LOOP
        frame = sys._getframe(1)
        location = self.place(frame)
        return ObservedLoop(self, self.copy_at(location, frame, "loop"), location)

    def lazy_and(self, first: Any, *names: str) -> Any:  # noqa: ARG002  # as the operator
        """``first and ...``: its truth is asked once, here."""
        truth = True if first else False  # noqa: SIM210  # as the operator
        return self._lazy(first, truth, truth, "and", sys._getframe(1))

    def lazy_or(self, first: Any, *names: str) -> Any:  # noqa: ARG002  # as the operator
        """``first or ...``: its truth is asked once, here."""
        truth = True if first else False  # noqa: SIM210  # as the operator
        return self._lazy(first, truth, not truth, "or", sys._getframe(1))

    def _lazy(self, first: Any, truth: bool, goes_on: bool, kind: str, frame: FrameType) -> PythonLazy:
        if threading.get_ident() != self.thread:
            return PythonLazy(first, truth, goes_on)
        return ObservedLazy(self, self.copy_at(self.place(frame), frame, kind), first, truth, goes_on)

    def operand(self, site: Copy, *, right: bool, decides: bool) -> None:
        """An operand of an ``and`` or ``or`` decides, or does not."""
        if decides:
            self.note(site, DECIDES[site[3]][right])
        elif right:
            self.note(site, UNDECIDED[site[3]])
        self.listener.operand(site, right=right, decides=decides)

    def call(self, function: Any) -> Any:
        """A callee, converted; what keeps results or needs gradients stays as it is."""
        if function is int or function is float:
            return self.listener.number(function)
        if threading.get_ident() != self.thread or isinstance(function, CACHED):
            return function
        if id(function) in EAGER_FORMS:
            return rewrite(EAGER_FORMS[id(function)])
        if _differentiates(function):
            wanted = torch.is_grad_enabled() or function.__name__ != "apply"
            return function if wanted else functools.partial(run_forward, self, function.__self__)  # type: ignore[arg-type]
        owner = getattr(function, "__self__", None)
        if isinstance(owner, list) and function == owner.sort:
            return lambda *, key=None, reverse=False: function(key=key and self.call(key), reverse=reverse)
        if isinstance(owner, STAGED_METHODS):
            return function  # stays as it is: what stands for it stages
        return followed(self, function)  # type: ignore[arg-type]  # it has what is asked of it


def _differentiates(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return isinstance(owner, type) and issubclass(owner, torch.autograd.Function)


class ObservedLazy(PythonLazy):
    """One run of an ``and`` or ``or``."""

    __slots__ = ("observer", "site")

    def __init__(self, observer: Observer, site: Copy, first: Any, truth: bool, goes_on: bool) -> None:
        super().__init__(first, truth, goes_on)
        self.observer, self.site = observer, site
        observer.operand(site, right=False, decides=not goes_on)

    def value(self, second: Any) -> Any:
        """The value of the whole expression; whether the right operand decides is asked of truth values alone."""
        if self.goes_on and is_truth(second):
            self._ask(second)
        return super().value(second)

    def test(self, second: Any) -> Any:
        """The truth of the expression, asked once, here."""
        return self._ask(second) if self.goes_on else self.truth

    def _ask(self, second: Any) -> bool:
        truth = True if second else False  # noqa: SIM210  # as the statement
        self.observer.operand(self.site, right=True, decides=truth is (self.site[3] == "or"))
        return truth


class ObservedLoop(PythonLoop):
    """One run of a loop statement."""

    __slots__ = ("active", "location", "observer", "site", "trips")

    def __init__(self, observer: Observer, site: Copy, location: Location) -> None:
        self.observer = observer
        self.site = site
        self.location = location
        self.active = False
        self.trips = 0
        observer.running.add(self)

    @property
    def position(self) -> int:
        """The number of the iteration that is running."""
        return self.trips - 1

    def test(self, value: Any) -> Any:
        """The test of a ``while``, asked once, here."""
        self.active = going = True if value else False  # noqa: SIM210  # as the statement
        self.observer.listener.test(self.site, self.trips, going)
        if going:
            self.trips += 1
        else:
            self.ends()
        return going

    def over(self, iterable: Any) -> Any:
        """The elements of a ``for``, counted."""
        for element in iterable:
            self.trips += 1
            self.active = True
            yield element
            self.active = False
        self.ends(exhausted=True)

    def breaks(self) -> None:
        """A ``break`` follows."""
        self.ends()

    def ends(self, *, exhausted: bool = False) -> None:
        """The loop makes no further trip; ``exhausted`` if there was nothing left to iterate over."""
        self.active = False
        self.observer.running.discard(self)
        self.observer.note(self.site, TRIPS[min(self.trips, 2)])
        self.observer.listener.ended(self.site, self.trips)
        if exhausted and self.trips:
            self.observer.note(self.site, ALL_TRIPS)


@contextlib.contextmanager
def observing(listener: Listener | None = None) -> Iterator[Observer]:
    """Exchange the operators for ones that remember; loops that a return or an exception has left end with it.

    No capture may run meanwhile, in any thread.
    """
    use_forms()
    observer = Observer(listener or Listener())
    native = {name: getattr(operators, name) for name in OBSERVED}
    for name in OBSERVED:
        setattr(operators, name, getattr(observer, name))
    try:
        yield observer
    finally:
        for name, operator in native.items():
            setattr(operators, name, operator)
        for loop in list(observer.running):
            loop.ends()
        observer.classes.restore()
