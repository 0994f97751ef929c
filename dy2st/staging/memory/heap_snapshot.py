"""Objects that code which isn't converted may change: what they hold before it runs, and whether they do after it."""

from __future__ import annotations

import array
import functools
import gc
import io
import threading
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from dy2st.values.journal import Journal, Slot
from dy2st.values.undefined import UNSET

CACHED = type(functools.lru_cache(lambda: None))
# What leads to nothing that a call could change.
_LEAVES = (int, float, complex, str, bytes, bool, type(None), type, types.ModuleType, types.CodeType, torch.Tensor)
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_LIBRARIES = ("torch", "dy2st")
# So many objects are looked at for one call, those nearest to it first.
_MOST = 10_000


class Observed:
    """What some values lead to, as it is now."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.before = list(_states(roots))

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
    """The roots, and the objects that they lead to."""
    return (state.value for state in _states(roots))


def _states(roots: Iterable[Any]) -> Iterator[_State]:
    seen: dict[int, Any] = {}
    waiting = list(roots)
    for value in waiting:  # which grows
        if id(value) not in seen and len(seen) < _MOST:
            seen[id(value)] = value
            state = _State(value)
            yield state
            waiting += [*state.attributes.values(), *state.parts]


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, (*_LEAVES, types.FunctionType)) or _is_of_library(value):
        return {}
    return dict(getattr(value, "__dict__", {}))


def _is_of_library(value: Any) -> bool:
    library = type(value).__module__.split(".")[0] in _LIBRARIES
    return library and not isinstance(value, torch.nn.Module)


def _parts(value: Any, attributes: dict[str, Any]) -> list[Any]:
    """What an object holds beside its attributes."""
    if isinstance(value, _LEAVES) or _is_of_library(value):
        return []
    if isinstance(value, types.FunctionType):
        return []
    if isinstance(value, CACHED):
        return [value.__wrapped__]
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        return []  # its place has a watch of its own
    own = {id(each) for each in attributes.values()} | {id(getattr(value, "__dict__", None))}
    return [part for part in gc.get_referents(value) if not isinstance(part, type) and id(part) not in own]


def _named(function: types.FunctionType) -> list[Slot]:
    """The variables around a function that its code names."""
    if function.__globals__.get("__name__", "").split(".")[0] in _LIBRARIES:
        return []
    names: list[str] = []
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names += code.co_names
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    outer = [Slot.of("global", function.__globals__, name) for name in names if name in function.__globals__]
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
