"""The tensors that a loop carries from one iteration to the next, as its body's graph shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.staging.loops.loop_state import LoopState
from dy2st.tracing.subgraph import storage_key
from dy2st.values.journal import Slot


@dataclass
class Carried:
    """One tensor of a loop's state: where it is kept, and what it is before the loop, at its head and at its end.

    ``head`` and ``ends`` are identities of storages (``storage_key``); there may be more ends than one, by path.
    """

    place: str | Slot
    before: torch.Tensor | None
    head: int
    ends: set[int]


def carried_tensors(state: LoopState) -> Iterator[Carried]:
    """What the run of a loop's body that has just ended carries on."""
    for place, head in state.head.items():
        if isinstance(place, str):
            before, end = state.before.get(place), state.after.env.get(place)
        elif isinstance(place, Slot):
            before, end = place.get(), state.after.stores.get(place)
        else:
            continue
        firsts, heads, ends = (pytree.tree_leaves(value) for value in (before, head, end))
        for i, (one, first) in enumerate(zip_longest(heads, firsts[: len(heads)])):
            if isinstance(one, torch.Tensor) and first is not one:
                last = ends[i : i + 1] if len(ends) == len(heads) else ends
                reached = [t for end in _tensors(last) for t in (end, *state.capture.aliases.others(end))]
                known = first if isinstance(first, torch.Tensor) else None
                yield Carried(place, known, storage_key(one), {storage_key(t) for t in reached})


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
