"""Objects that code which isn't converted may change: what they hold before it runs, and whether they do after it."""

from __future__ import annotations

import array
import gc
import io
import logging
import threading
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from dy2st.staging.memory.heap import CACHED, names_in, of_library, walk
from dy2st.values.journal import Journal, Slot
from dy2st.values.plain_objects import namespace_of
from dy2st.values.undefined import UNSET

# What leads to nothing that a call could change; what a logger knows is told, and no model computes with it.
_LEAVES = (
    *(int, float, complex, str, bytes, bool, type(None), type, types.ModuleType, types.CodeType, torch.Tensor),
    *(logging.Logger, logging.Handler),
)
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class Observed:
    """What some values lead to, as it is now."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.before = _states(roots)

    def changed(self) -> bool:
        """Whether anything isn't as it was."""
        return any(True for state in self.before for _ in state.changes())

    def changed_unseen(self, journal: Journal) -> Iterator[Any]:
        """What isn't as it was in a way that a journal does not know; writes to tensors are the graph's business."""
        for state in self.before:
            if not isinstance(state.value, torch.Tensor) and any(slot not in journal.old for slot in state.changes()):
                yield state.value


class _State:
    """One object: its attributes, its elements, and a content that Python can't look into."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.named = _named(value) if isinstance(value, types.FunctionType) else []
        self.attributes = _attributes(value)
        self.parts = [place.get() for place in self.named] or _parts(value, self.attributes)
        self.content = content(value)

    def changes(self) -> Iterator[Slot]:
        """The places that hold something else now."""
        now = _State(self.value)
        for name in self.attributes.keys() | now.attributes.keys():
            if self.attributes.get(name, UNSET) is not now.attributes.get(name, UNSET):
                yield Slot.of("attribute", self.value, name)
        if isinstance(self.value, types.FunctionType):
            # A global that is new to it comes with a store of its own.
            pairs = zip(self.named, self.parts, strict=True)
            yield from (place for place, one in pairs if place.get() is not one)
            return
        same = len(self.parts) == len(now.parts) and all(a is b for a, b in zip(self.parts, now.parts, strict=True))
        if not same or self.content != now.content:
            yield Slot.of("content", self.value)


def reached(roots: Iterable[Any]) -> Iterator[Any]:
    """The objects that some values lead to, those among the values included."""
    return (state.value for state in _states(roots))


def _states(roots: Iterable[Any]) -> list[_State]:
    found: list[_State] = []

    def held(value: Any) -> list[Any]:
        state = _State(value)
        found.append(state)
        return [*state.attributes.values(), *state.parts]

    for _ in walk(roots, (held,)):
        pass
    return found


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, (*_LEAVES, types.FunctionType)) or of_library(value):
        return {}
    return namespace_of(value)


def _parts(value: Any, attributes: dict[str, Any]) -> list[Any]:
    """What an object holds beside its attributes."""
    if isinstance(value, (*_LEAVES, types.FunctionType)) or of_library(value):
        return []
    if isinstance(value, CACHED):
        return [value.__wrapped__]
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        return []  # its place has a watch of its own
    own = {id(each) for each in attributes.values()} | {id(getattr(value, "__dict__", None))}
    return [part for part in gc.get_referents(value) if not isinstance(part, type) and id(part) not in own]


def _named(function: types.FunctionType) -> list[Slot]:
    """The variables around a function that its code names."""
    known = function.__globals__
    if known.get("__name__", "").partition(".")[0] in ("torch", "dy2st"):
        return []
    outer = [Slot.of("global", known, name) for name in names_in(function.__code__) if name in known]
    return outer + [Slot.of("cell", cell) for cell in function.__closure__ or ()]


def is_buffer(value: Any) -> bool:
    """Whether a value holds numbers that are changed in place, in a way that no journal sees."""
    kind = type(value)
    return (kind.__module__, kind.__name__) == ("numpy", "ndarray") or isinstance(value, array.array)


def content(value: Any) -> Any:
    """What can be compared of what an object holds in memory of its own; for a tensor how often it was written to."""
    if isinstance(value, torch.Tensor):
        return None if value.is_inference() else value._version
    if isinstance(value, (io.StringIO, io.BytesIO)):
        return None if value.closed else (value.tell(), value.getvalue())
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, _LOCKS):
        return repr(value)
    return (getattr(value, "shape", None), value.tobytes()) if is_buffer(value) else None


class UnchangedBuffers:
    """The buffers among some values, which may only be read under a condition."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.before = [(value, content(value)) for value in values if is_buffer(value)]

    def changed(self) -> list[Any]:
        """Those that hold something else now."""
        return [value for value, before in self.before if content(value) != before]
