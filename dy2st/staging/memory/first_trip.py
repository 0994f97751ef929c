"""In-place changes in a loop of what is carried: in the first iteration eager changes the tensor from before the loop.

``while ...: n -= 1; n = n * 2`` writes once into what ``n`` was before. The graph's loop works on a copy, which is the
same only if nobody else looks at that tensor. With ``a, b = b, a`` a later iteration does it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

from dy2st.errors import AliasError
from dy2st.source.assigning_lines import quoted
from dy2st.staging.memory.aliases import storage_key
from dy2st.staging.memory.carried import carried_tensors
from dy2st.staging.memory.stale_copies import check_stale_copies
from dy2st.tracing.subgraph import storage_of, written_inputs
from dy2st.values.describing import shown
from dy2st.values.journal import Slot
from dy2st.values.plain_objects import attributes_of

if TYPE_CHECKING:
    from dy2st.staging.loops.loop_state import LoopState

# How deep objects and containers are searched for another reference to a tensor.
MOST_LEVELS = 4


def check_first_trip(state: LoopState) -> None:
    """Refuse a loop whose body writes to a carried tensor that something else refers to before the loop."""
    written = {storage_of(t) for node in state.scope.subgraph.graph.nodes for t in written_inputs(node)}
    if not written:
        return
    carried = list(carried_tensors(state))
    check_stale_copies(state, carried)
    changed = {each.head for each in carried if each.head in written}
    while True:
        # What becomes such a tensor in one iteration is written to in the next.
        handed_on = {end for each in carried if each.head in changed for end in each.ends}
        more = {each.head for each in carried if each.head in handed_on} - changed
        if not more:
            break
        changed |= more
    own = state.scope.subgraph.own_storages()
    for each in carried:
        if each.head in changed and not each.ends <= own:
            raise AliasError(
                f"{quoted(shown(each.place))} is changed in place in a staged loop that also assigns a tensor from"
                " outside of the loop to it: a later iteration changes that tensor",
                hint="assign a clone() of it, or compute a new tensor (x = x + 1 in place of x += 1)",
                location=state.loop.location,
            )
        before = each.before
        if (
            each.head in changed
            and before is not None
            and (_is_input(state, before) or _seen(state, each.place, before))
        ):
            name = quoted(shown(each.place))
            raise AliasError(
                f"{name} is changed in place in a staged loop that also assigns it: in the first iteration that"
                " changes the tensor from before the loop, which is used elsewhere",
                hint="start the loop with a clone() of it, or compute a new tensor (x = x + 1 in place of x += 1)",
                location=state.loop.location,
            )


def _is_input(state: LoopState, tensor: torch.Tensor) -> bool:
    """Whether a tensor is one of the program's inputs, parameters or buffers, or a view of it."""
    tracing = state.capture.tracing
    storage = storage_key(tensor)
    return isinstance(tensor, torch.nn.Parameter) or any(
        storage_of(node) == storage for node in tracing.root.graph.nodes if node.op in ("placeholder", "get_attr")
    )


def _seen(state: LoopState, place: str | Slot, before: torch.Tensor) -> bool:
    """Whether a variable of the running functions, other than the place itself, leads to a tensor's memory."""
    storage, frame = storage_key(before), state.loop.frame
    found = _seen_from(frame, frame.f_locals, place)
    return any(isinstance(t, torch.Tensor) and storage_key(t) == storage for t in found)


def is_seen(container: Any, place: Any, frame: FrameType, variables: dict[Any, Any]) -> bool:
    """Whether a variable of the running functions, other than the place itself, leads to a container.

    ``variables`` are those of the innermost one, at ``frame``.
    """
    return any(value is container for value in _seen_from(frame, variables, place))


def _seen_from(frame: FrameType, variables: Any, place: Any) -> Iterator[Any]:
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
    ours = type(value).__module__.startswith("dy2st.operators.")
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
