"""What the tag of a value says of all else that the same branch gave: which arm was taken.

    key, grouped, rows = x, None, None
    if x.sum() > 0: key, rows = torch.cat([x, x]), x.shape[0]
    else: grouped = x.shape[0]
    ...
    if grouped is None: y = y @ key[rows:]     # here the key has twice as many rows, and ``rows`` is one number

A size on which the arms of a branch do not agree becomes a symbol of its own. Where a later test of a tag says which
arm was taken, the symbol is the size of that arm, and the tags of other values are the cases that the arm gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from dy2st.tracing.size_facts import expression
from dy2st.tracing.tracer import Tracing, equal_sizes

# A tag, and one of its cases.
Case = tuple[fx.Node, int]


@dataclass
class Taken:
    """What holds if an arm was taken: symbolic conditions, and the cases of tags."""

    sizes: list[Any]
    cases: dict[Case, bool]


class BranchTags:
    """The tags that branches gave, and what follows from each of their cases."""

    def __init__(self) -> None:
        self._arms: dict[fx.Node, dict[int, Taken]] = {}

    def note(
        self, tracing: Tracing, tags: Iterable[tuple[torch.Tensor, Any, Any]], sizes: tuple[list[Any], list[Any]]
    ) -> None:
        """A branch has given ``tags``, each with its case by arm; ``sizes`` are the conditions of either arm."""
        known = [(tracing.node_of(tag), cases) for tag, *cases in tags if all(type(case) is int for case in cases)]
        told = [(node, cases) for node, cases in known if node is not None and cases[0] != cases[1]]
        arms = [Taken(sizes[arm], {(node, cases[arm]): True for node, cases in told}) for arm in (0, 1)]
        for node, cases in told:
            self._arms[node] = dict(zip(cases, arms, strict=True))

    def said_by(self, cases: Mapping[Case, bool]) -> Taken:
        """What follows from tags being cases, or not; these are among it."""
        found = Taken([], dict(cases))
        for (tag, case), holds in cases.items():
            for each, taken in self._arms.get(tag, {}).items():
                if (each == case) is holds:
                    found.sizes += taken.sizes
                    found.cases.update(taken.cases)
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
