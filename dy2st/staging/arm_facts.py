"""What one result of a branch says of the arm that ran, and so of the other results.

    losses, kind = (0, "none") if empty else (x, "pairs")
    if isinstance(losses, Tensor):  # it was the second arm, so that kind is "pairs"

The results that count are the constants: the tags of values that are of one kind in one arm and of another in the
other.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import fx

from dy2st.values.tagged_union import implied

Known = dict[tuple[fx.Node, int], bool]


class ArmFacts:
    """The branches of a capture whose arms give constants: each result with its value in the first and second arm."""

    def __init__(self) -> None:
        self._branches: dict[fx.Node, tuple[fx.Node, list[tuple[fx.Node, int, int]]]] = {}

    def note(self, test: fx.Node, results: Iterable[tuple[fx.Node, int, int]]) -> None:
        """A branch on ``test`` has been emitted."""
        found = list(results)
        for node, *_ in found:
            self._branches[node] = test, found

    def following(self, known: Known) -> Known:
        """What follows of (tag, case) pairs that hold, or don't."""
        found: Known = {}
        waiting = list(known.items())
        for (tag, case), holds in waiting:  # it grows
            if tag not in self._branches:
                continue
            test, results = self._branches[tag]
            mine = next(values for node, *values in results if node is tag)
            arms = [arm for arm in (0, 1) if (mine[arm] == case) is holds]
            if len(arms) != 1:
                continue
            (arm,) = arms
            facts = implied(test, arm == 0) | {(node, values[arm]): True for node, *values in results}
            new = {key: value for key, value in facts.items() if key not in found and key not in known}
            found |= new
            waiting += new.items()
        return found
