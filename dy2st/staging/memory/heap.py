"""What the variables of the running functions lead to: who else can see an object or a tensor's memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

import torch

from dy2st.values.journal import Slot
from dy2st.values.plain_objects import attributes_of

# How deep objects and containers are searched for another reference to a tensor.
MOST_LEVELS = 4


def is_seen(container: Any, place: Any, frame: FrameType, variables: dict[Any, Any]) -> bool:
    """Whether a variable of the running functions, other than the place itself, leads to a container.

    ``variables`` are those of the innermost one, at ``frame``.
    """
    return any(value is container for value in seen_from(frame, variables, place))


def seen_from(frame: FrameType, variables: Any, place: Any) -> Iterator[Any]:
    """What the variables of the running functions lead to, other than the place itself."""
    around: FrameType | None = frame
    searched: set[int] = set()
    while around is not None and "/torch/" not in around.f_code.co_filename:
        package = around.f_globals.get("__name__", "").partition(".")[0]
        found = variables if around is frame else around.f_locals
        for variable, value in found.items() if package != "dy2st" else ():
            if around is frame and variable == place:
                continue
            yield from _reached(value, place, searched, MOST_LEVELS)
        around = around.f_back


def _reached(value: Any, but: Any, searched: set[int], levels: int) -> Iterator[Any]:
    """A value and what it holds, what is at the place ``but`` left out."""
    yield value
    if isinstance(value, torch.Tensor):
        return
    # The drivers of the statements around are ours.
    ours = type(value).__module__.partition(".")[0] == "dy2st"
    if levels == 0 or id(value) in searched or ours or isinstance(value, (type, ModuleType)):
        return
    searched.add(id(value))
    own = but if isinstance(but, Slot) and but.owner is value else None
    if own is not None and own.kind == "content":
        return
    parts: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        parts += value.items()
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        parts += enumerate(value)
    members = attributes_of(value)
    for name, part in [*members.items(), *members.get("_buffers", {}).items()]:
        if name != "_buffers" and (own is None or name != own.name):
            parts.append((name, part))
    for _, part in parts:
        yield from _reached(part, but, searched, levels - 1)
