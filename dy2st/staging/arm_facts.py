"""What one result of a branch says of the arm that ran, and so of the other results.

    losses, kind = (0, "none") if empty else (x, "pairs")
    if isinstance(losses, Tensor):  # it was the second arm, so that kind is "pairs"

The results that count are the constants: the tags of values that are of one kind in one arm and of another in the
other. A size on which the arms do not agree is a symbol of its own; where it is known which arm ran, it is the size of
that arm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

from dy2st.tracing.size_facts import expression
from dy2st.tracing.tracer import Tracing, equal_sizes
from dy2st.values.tagged_union import implied

Known = dict[tuple[fx.Node, int], bool]
# What sizes are if the first arm ran, and if the second did: symbolic conditions.
Sizes = tuple[list[Any], list[Any]]


class ArmFacts:
    """The branches of a capture whose arms give constants: each result with its value in the first and second arm."""

    def __init__(self) -> None:
        self._branches: dict[fx.Node, tuple[fx.Node, list[tuple[fx.Node, int, int]], Sizes]] = {}

    def note(self, test: fx.Node, results: Iterable[tuple[fx.Node, int, int]], sizes: Sizes) -> None:
        """A branch on ``test`` has been emitted."""
        found = list(results)
        for node, *_ in found:
            self._branches[node] = test, found, sizes

    def sizes(self, known: Known) -> list[Any]:
        """What follows for sizes of (tag, case) pairs that hold, or don't."""
        found: list[Any] = []
        for (tag, case), holds in known.items():
            arm = self._arm(tag, case, holds=holds)
            if arm is not None:
                found += self._branches[tag][2][arm]
        return found

    def _arm(self, tag: fx.Node, case: int, *, holds: bool) -> int | None:
        """The arm that has run if a tag is a case, or isn't; None if that says nothing."""
        if tag not in self._branches:
            return None
        values = next(values for node, *values in self._branches[tag][1] if node is tag)
        arms = [arm for arm in (0, 1) if (values[arm] == case) is holds]
        return arms[0] if len(arms) == 1 else None

    def following(self, known: Known) -> Known:
        """What follows of (tag, case) pairs that hold, or don't."""
        found: Known = {}
        waiting = list(known.items())
        for (tag, case), holds in waiting:  # it grows
            arm = self._arm(tag, case, holds=holds)
            if arm is None:
                continue
            test, results, _ = self._branches[tag]
            facts = implied(test, arm == 0) | {(node, values[arm]): True for node, *values in results}
            new = {key: value for key, value in facts.items() if key not in found and key not in known}
            found |= new
            waiting += new.items()
        return found


def sizes_by_arm(
    tracing: Tracing, results: Sequence[torch.Tensor], arms: Sequence[Sequence[torch.Tensor]], first_symbol: int
) -> tuple[list[Any], list[Any]]:
    """What the sizes of a branch's results are if either arm is taken, or which of them are equal.

    What an arm has made (after ``first_symbol``) is not known outside of it.
    """
    return _sizes(tracing, results, arms[0], first_symbol), _sizes(tracing, results, arms[1], first_symbol)


def _sizes(
    tracing: Tracing, results: Sequence[torch.Tensor], arm: Sequence[torch.Tensor], first_symbol: int
) -> list[Any]:
    facts: list[Any] = []
    named: dict[Any, Any] = {}
    for result, side in zip(results, arm, strict=True):
        size: Any
        for size, given in zip(result.shape, side.shape, strict=True):
            if not isinstance(size, torch.SymInt):
                continue
            made = tracing.is_younger(given, first_symbol)
            other = named.setdefault(expression(given), size) if made else given
            if other is not size:
                facts.append(equal_sizes(size, other))
    return facts
