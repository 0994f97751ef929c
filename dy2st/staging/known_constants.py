"""Numbers of the graph that are one of a few Python ints, by the path that was taken: ``6 if x < 0.3 else 12``.

Code that is not converted takes no number of the graph. It can be called with each of the constants, in an arm of its
own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.values.number import Number
from dy2st.values.tagged_union import TaggedUnion

MOST_CONSTANTS = 6


class KnownConstants:
    """What is known of the numbers of one capture."""

    def __init__(self) -> None:
        # By the identity of a number's tensor; the tensor is kept, so that identities stay unique.
        self._known: dict[int, tuple[torch.Tensor, frozenset[int]]] = {}

    def note(self, tensor: torch.Tensor, *sides: Any) -> None:
        """A branch has given the int in ``tensor``, which is that of one of its arms."""
        found = frozenset[int]()
        for side in sides:
            constants = self.constants_of(side)
            if not constants:
                return
            found |= constants
        if len(found) <= MOST_CONSTANTS:
            self._known[id(tensor)] = tensor, found

    def constants_of(self, value: Any) -> frozenset[int]:
        """The ints that a value is one of; none if that is not known."""
        if type(value) is int:
            return frozenset((value,))
        known = self._known.get(id(value.tensor)) if isinstance(value, Number) and value.kind is int else None
        return frozenset() if known is None else known[1]

    def by_case(self, arguments: Any) -> Any:
        """Arguments with a union of constants in place of each number; None if there is none, or one is unknown."""
        numbers = [leaf for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, Number)]
        if not numbers or not all(map(self.constants_of, numbers)):
            return None
        unions = {id(number.tensor): self._union(number) for number in numbers}
        return pytree.tree_map_only(Number, lambda number: unions[id(number.tensor)], arguments)

    def _union(self, number: Number) -> TaggedUnion:
        constants = sorted(self.constants_of(number))
        tag = torch.zeros((), dtype=torch.int64)
        for each in constants[1:]:
            tag = tag + (number.tensor >= each)
        return TaggedUnion(tag, list(constants))
