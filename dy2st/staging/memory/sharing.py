"""Results of one branch or loop that are the same object, or share memory, because what they stand for does.

``n = x * 2; m = n`` in either arm gives one tensor with two names. So it is one result, and a write to it is seen under
both names. Where only one arm's values share memory, a write to either result is a matter of the path, and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from dy2st.errors import DifferentObjectsError
from dy2st.staging.lattice.join import Invariant, Join, Phi, Structured, leaves
from dy2st.staging.memory.aliases import Aliases
from dy2st.values.describing import article
from dy2st.values.undefined import UNSET


def first_alike(leaves: Sequence[Phi]) -> list[int]:
    """For each leaf the position of the first one that stands for the same two values."""
    seen: dict[Any, int] = {}
    found = []
    for i, leaf in enumerate(leaves):
        tensors = all(side is UNSET or isinstance(side, torch.Tensor) for side in (leaf.a, leaf.b))
        key = (id(leaf.a), id(leaf.b), leaf.dtype, leaf.kind) if tensors else i
        found.append(seen.setdefault(key, i))
    return found


def complete(joins: Iterable[Join], original: Callable[[Any], Any]) -> None:
    """A container that is in one place on one path and in another on the other is in both of them on either.

    ``o.w`` holds it in one arm, ``q`` does in the other: one stand-in is made for it, which has values on both paths.
    """
    found: dict[int, tuple[list[Structured], list[Structured]]] = {}
    for group in (each for joined in joins for each in _groups(joined)):
        path = _only_path(group.sides)
        if path is not None:
            found.setdefault(id(original(group.sides[path])), ([], []))[path].append(group)
    for firsts, seconds in found.values():
        if firsts and seconds and all(_alike(one, other) for one in firsts for other in seconds):
            first, second = leaves(firsts[0]), leaves(seconds[0])
            values = [(one.a, other.b) for one, other in zip(first, second, strict=True)]
            sides = firsts[0].sides[0], seconds[0].sides[1]
            for group in (*firsts, *seconds):
                group.sides = sides
                for leaf, (a, b) in zip(leaves(group), values, strict=True):
                    leaf.a, leaf.b = a, b


def _groups(joined: Join) -> Iterator[Structured]:
    if isinstance(joined, Structured):
        yield joined
        for child in joined.children:
            yield from _groups(child)


def _only_path(sides: tuple[Any, ...]) -> int | None:
    """The path that alone needs a container; None if both do."""
    return None if len(sides) != 2 or (sides[0] is UNSET) is (sides[1] is UNSET) else int(sides[0] is UNSET)


def _alike(a: Join, b: Join) -> bool:
    """Whether what the first path has in one place and the second in another can be one result."""
    if isinstance(a, Phi) and isinstance(b, Phi):
        ranks = [each.dim() if isinstance(each, torch.Tensor) else 0 for each in (a.a, b.b)]
        there = a.a is not UNSET and b.b is not UNSET
        return there and ranks[0] == ranks[1] and (a.dtype, a.kind) == (b.dtype, b.kind)
    if isinstance(a, Structured) and isinstance(b, Structured):
        same = a.signature == b.signature and len(a.children) == len(b.children)
        return same and all(map(_alike, a.children, b.children))
    return isinstance(a, Invariant) and isinstance(b, Invariant) and a.value is b.value


class StandIns:
    """Containers that are made to stand for others, one for each pair of those.

    ``original`` gives the container itself for one that shows what an arm has made of it.
    """

    def __init__(self, original: Callable[[Any], Any] = lambda side: side) -> None:
        self.original = original
        self.by_sides: dict[tuple[int, ...], Any] = {}
        # By the path and the container that is stood for.
        self.by_side: dict[tuple[int, int], dict[int, Any]] = {}
        # The path that alone needs one, by its identity.
        self.only: dict[int, int | None] = {}
        # So that identities stay unique.
        self.kept: list[Any] = []

    def of(self, sides: tuple[Any, ...], built: Any, note: Callable[[], None]) -> Any:
        """What stands for ``sides`` already, else ``built``, which does so from now on: ``note`` is called."""
        only = _only_path(sides)
        sides = tuple(side for side in sides if side is not UNSET)
        key = tuple(id(self.original(side)) for side in sides)
        known = self.by_sides.get(key)
        if known is not None:
            if self.only.get(id(known)) != only:
                kind = article(type(known).__name__)
                raise DifferentObjectsError(
                    f"{kind} is held in one place on one path and in another place on the other, and differs",
                    hint="hold it in one variable, and what differs in another",
                )
            return known
        self.only[id(built)] = only
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
                aliases.may_be_one(*found.values())
