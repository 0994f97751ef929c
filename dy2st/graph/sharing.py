"""Results of one branch or loop that are the same object, or share memory, because what they stand for does.

``n = x * 2; m = n`` in either arm gives one tensor with two names. So it is one result, and a write to it is seen under
both names. Where only one arm's values share memory, a write to either result is a matter of the path, and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from dy2st.graph.aliases import Aliases, storage_key
from dy2st.graph.join import Leaf
from dy2st.graph.poison import UNSET


def first_alike(leaves: Sequence[Leaf]) -> list[int]:
    """For each leaf the position of the first one that stands for the same two values."""
    seen: dict[Any, int] = {}
    found = []
    for i, leaf in enumerate(leaves):
        tensors = all(side is UNSET or isinstance(side, torch.Tensor) for side in (leaf.a, leaf.b))
        key = (id(leaf.a), id(leaf.b), leaf.dtype, leaf.kind) if tensors else i
        found.append(seen.setdefault(key, i))
    return found


def sharing(aliases: Aliases, values: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """The positions of tensors that share memory, or may do so on some path: the smaller one first."""
    places: dict[int, list[int]] = {}
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            places.setdefault(storage_key(value), []).append(i)
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            keys = {storage_key(value), *(storage_key(other) for other in aliases.others(value))}
            yield from ((i, j) for key in keys for j in places.get(key, ()) if i < j)


class StandIns:
    """Containers that are made to stand for others, one for each pair of those.

    ``original`` gives the container itself for one that shows what an arm has made of it.
    """

    def __init__(self, original: Callable[[Any], Any] = lambda side: side) -> None:
        self.original = original
        self.by_sides: dict[tuple[int, ...], Any] = {}
        # By the path and the container that is stood for.
        self.by_side: dict[tuple[int, int], dict[int, Any]] = {}
        # So that identities stay unique.
        self.kept: list[Any] = []

    def of(self, sides: tuple[Any, ...], built: Any, note: Callable[[], None]) -> Any:
        """What stands for ``sides`` already, else ``built``, which does so from now on: ``note`` is called."""
        # What one path alone needs is the same on whichever it is.
        sides = tuple(side for side in sides if side is not UNSET)
        key = tuple(id(self.original(side)) for side in sides)
        known = self.by_sides.get(key)
        if known is not None:
            return known
        if not isinstance(built, tuple):
            self._add(key, built, sides)
        note()
        return built

    def _add(self, key: tuple[int, ...], built: Any, sides: tuple[Any, ...]) -> None:
        self.by_sides[key] = built
        self.kept.append((built, sides))
        for path, side in enumerate(sides if len(sides) > 1 else sides * 2):
            self.by_side.setdefault((path, id(self.original(side))), {})[id(built)] = built

    def note(self, aliases: Aliases) -> None:
        """Where two of them stand for one container on some path, neither may be changed."""
        for found in self.by_side.values():
            if len(found) > 1:
                for built in found.values():
                    aliases.object_may_be_older(built)
