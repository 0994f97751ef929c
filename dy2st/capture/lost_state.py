"""What a model stores that outlives its call, and that a program doesn't store."""

from __future__ import annotations

import types
from typing import Any

import torch

from dy2st.errors import Location
from dy2st.source.assigning_lines import stored_at
from dy2st.staging.session import Session
from dy2st.values.journal import CONTAINERS, Slot
from dy2st.values.staged_text import text_of

# How far from the model, its arguments and its globals an object is looked for.
DEEPEST = 3


def lost_state(capture: Session, call: Any, arguments: Any) -> list[tuple[str, Location | None]]:
    """What the code changed of objects that existed before, buffers and tensors apart: in words, with a place.

    ``call`` is what is captured, ``arguments`` what it was called with.
    """
    found: list[tuple[str, Location | None]] = []
    outside: set[int] | None = None
    cells = {id(cell) for cell in getattr(_function(call), "__closure__", None) or ()}
    for slot, old in capture.trace_frames[0].journal.old.items():
        if _same(slot, old, slot.get()) or _is_buffer(slot):
            continue
        if outside is None:
            outside = _reachable(call, arguments)
        if slot.kind == "global" or slot.identity in (cells if slot.kind == "cell" else outside):
            place = stored_at(type(slot.owner), slot.name) if slot.kind == "attribute" else None
            found.append((_words(slot), place))
    return found


def _function(call: Any) -> Any:
    return getattr(call, "__func__", call)


def _words(slot: Slot) -> str:
    return f"the global {slot.name!r}" if slot.kind == "global" else str(slot)


def _same(slot: Slot, old: Any, new: Any) -> bool:
    if slot.kind != "content":
        plain = type(old) is type(new) and isinstance(old, (int, float, str))
        return old is new or (plain and text_of(old) == text_of(new))
    if isinstance(old, dict):
        return list(old) == list(new) and all(x is y for x, y in zip(old.values(), new.values(), strict=True))
    if isinstance(old, frozenset):
        return bool(old == new)
    return len(old) == len(new) and all(x is y for x, y in zip(old, new, strict=True))


def _is_buffer(slot: Slot) -> bool:
    owner = slot.owner
    return slot.kind == "attribute" and isinstance(owner, torch.nn.Module) and slot.name in owner.__dict__["_buffers"]


def _reachable(call: Any, arguments: Any) -> set[int]:
    """The identities of the objects and containers that existed before the call."""
    function = _function(call)
    found: set[int] = set()
    pending = [(getattr(call, "__self__", None), 0), (arguments, 0)]
    pending += [(value, 1) for value in getattr(function, "__globals__", {}).values()]
    pending += [(cell.cell_contents, 1) for cell in getattr(function, "__closure__", None) or () if _filled(cell)]
    if not isinstance(function, types.FunctionType):
        pending.append((call, 0))
    while pending:
        thing, depth = pending.pop()
        if id(thing) in found or isinstance(thing, (types.ModuleType, type, types.FunctionType, torch.Tensor)):
            continue
        if isinstance(thing, torch.nn.Module):
            found.update(map(id, thing.modules()))
            pending += [(value, 1) for module in thing.modules() for value in vars(module).values()]
        elif isinstance(thing, (*CONTAINERS, tuple)):
            found.add(id(thing))
            inner = thing.values() if isinstance(thing, dict) else thing
            pending += [(value, depth + 1) for value in inner if depth < DEEPEST]
        elif hasattr(thing, "__dict__"):
            found.add(id(thing))
            pending += [(value, depth + 1) for value in vars(thing).values() if depth < DEEPEST]
    return found


def _filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
