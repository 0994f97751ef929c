"""Captures that let values which do not matter through everything.

Nothing that is made on a path on which eager raises matters; and of a capture that looks for refusals only, the values
of muted statements.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

import torch

from dy2st.calls.call_conversion import MUTATORS
from dy2st.capture.capturing import Capture
from dy2st.operators.export_session import ExportSession, current
from dy2st.source.muting import muting
from dy2st.source.rewriting import is_rewritten
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.case_distribution import distribute
from dy2st.staging.containers.repeated import lists_repeated
from dy2st.staging.users_code import should_follow
from dy2st.values.error_recovery import RecoveryValue, mutes
from dy2st.values.journal import CONTAINERS
from dy2st.values.number import NumberBounds
from dy2st.values.python_errors import Catching
from dy2st.values.tagged_union import TaggedUnion, TaggedUnions


class RecoveringCapture(Capture):
    """A capture in which, where there may be muted values, other code is not called with them."""

    @property
    def recovering(self) -> bool:
        """Whether there may be muted values."""
        return self.failing is not None

    def call(self, function: Any) -> Any:
        """What to call in place of ``function``."""
        found = super().call(function)
        return found if not self.recovering or self._takes_anything(function) else _absorbing(found)

    def _takes_anything(self, function: Any) -> bool:
        """Converted code, and methods that put a value into a container, go on with muted values."""
        if isinstance(function, TaggedUnion):
            return True
        plain = function.__func__ if isinstance(function, types.MethodType) else function
        if isinstance(plain, types.FunctionType):
            return should_follow(plain) or is_rewritten(plain)
        if isinstance(function, torch.nn.Module):
            return not type(function).__module__.startswith("torch.nn.")
        if isinstance(function, type):
            init = inspect.getattr_static(function, "__init__")
            return isinstance(init, types.FunctionType) and should_follow(init)
        owner = getattr(function, "__self__", None)
        return isinstance(owner, CONTAINERS) and getattr(function, "__name__", "") in MUTATORS

    def in_(self, item: Any, container: Any) -> Any:
        """``item in container``."""
        return RecoveryValue() if self.recovering and mutes(item, container) else super().in_(item, container)

    def is_(self, a: Any, b: Any) -> Any:
        """``a is b``."""
        return RecoveryValue() if isinstance(a, RecoveryValue) or isinstance(b, RecoveryValue) else super().is_(a, b)

    def truth(self, value: Any) -> Any:
        """A condition where staging is impossible: the element that it decides about is looked at."""
        return True if isinstance(value, RecoveryValue) else super().truth(value)

    def item(self, owner: Any) -> Any:
        """The object of a subscript load."""
        found = super().item(owner)
        return _Items(found) if self.recovering else found


class SearchingCapture(RecoveringCapture):
    """A capture that looks for refusals only."""

    @property
    def recovering(self) -> bool:
        """Statements are muted anywhere."""
        return True


class _Items:
    """A subscript load, of which a muted index gives a muted value."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __getitem__(self, key: Any) -> Any:
        return RecoveryValue() if mutes(key) else self.owner[key]


def _absorbing(function: Any) -> Any:
    @functools.wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        return RecoveryValue() if mutes(args, kwargs) else function(*args, **kwargs)

    return run


def _hold(capture: Capture, test: torch.Tensor, what: str) -> None:
    capture.guards.require(test, location_of(users_frame()), what, always=True)


@contextlib.contextmanager
def capturing() -> Iterator[Capture]:
    """Start a capture inside a running trace: one that looks for refusals only, where statements may be muted."""
    session = current()
    assert isinstance(session, ExportSession)
    capture = RecoveringCapture() if muting().mutes is None else SearchingCapture()
    session.part(Catching).may_catch = capture.may_catch
    session.part(TaggedUnions).distribute = functools.partial(distribute, capture)
    session.part(NumberBounds).renew = capture.tracing.renew_item
    session.part(NumberBounds).say = capture.say_bounds
    session.part(NumberBounds).hold = functools.partial(_hold, capture)
    try:
        with session.answered_by(capture), lists_repeated():
            yield capture
    finally:
        capture.classes.restore()
        capture.trace_frames[0].subgraph.enter()
        for scope in reversed(capture.trace_frames):
            scope.journal.take()
