"""Where a generator's decisions come from."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Choices:
    """Decisions drawn from ``number(lowest, highest)``, both inclusive."""

    def __init__(self, number: Callable[[int, int], int]) -> None:
        self.number = number

    def pick(self, items: Sequence[Item]) -> Item:
        """One of them; an item that occurs twice is twice as likely."""
        return items[self.number(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        return self.number(0, 99) >= 100 - percent

    def some(self, items: Sequence[Item], lowest: int, highest: int) -> list[Item]:
        """So many of them, each at most once, in their order."""
        count = min(self.number(lowest, highest), len(items))
        left = list(range(len(items)))
        while len(left) > count:
            del left[self.number(0, len(left) - 1)]
        return [items[index] for index in left]


def seeded(seed: int) -> Choices:
    """The decisions that a seed stands for."""
    return Choices(random.Random(seed).randint)
