"""Inputs on either side of where a condition flips, close to it: they tell a wrong limit from the right one.

Those on the edge itself tell ``<`` from ``<=``.

Two inputs that go different ways at a construct are ends of a line on which the condition flips. Bisection finds two
near the place: each is as far from it as is needed for no rounding to take it across.
Source: White & Cohen, "A domain strategy for computer program testing", 1980 (points on and off a border); DeMillo,
Lipton & Sayward, "Hints on test data selection", 1978 (wrong programs that differ little from the right one).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch

from dy2st.parity.margins import Distance
from dy2st.parity.space import Candidate
from dy2st.staging.routes import Copy
from dy2st.staging.sites import ARMS, DECIDES, TRIPS, UNDECIDED

# A margin that is less may be a tie for rounding; one that is more tells few limits apart.
LEAST, MOST = 1e-4, 1e-2
_HALVINGS = 14
# Where the way between two inputs is parted: its middle may be just where the condition flips.
_SHARES = (0.5, 0.45, 0.6)
# Ways that are neighbours: one condition decides between them.
_NEIGHBOURS = (
    *(ARMS, TRIPS[:2], TRIPS[1:]),
    *((way, UNDECIDED[kind]) for kind, ways in DECIDES.items() for way in ways),
)

# What a margin is on the edge itself.
_TIE = math.ulp(0.0)
# So many candidates on one edge are looked at: on some of them numbers are rounded.
_MOST_TIES = 12

# A copy, the way that is taken, and its neighbour.
Side = tuple[Copy, str, str]


class Edges:
    """The candidates that have come nearest to the places where conditions flip, from either side.

    ``is_exact`` says whether nothing is rounded on the way to what is decided on a candidate.
    """

    def __init__(self, is_exact: Callable[[Candidate], bool] = lambda _: True) -> None:
        self.nearest: dict[Side, tuple[float, Candidate]] = {}
        self._is_exact = is_exact
        # Candidates on which a condition is just at its limit: those to look at, and one on which numbers are exact.
        self._at_limit: dict[Side, list[Candidate]] = {}
        self._exact: dict[Side, Candidate] = {}

    def note(
        self, taken: set[tuple[Copy, str]], distance: dict[tuple[Copy, str], Distance], candidate: Candidate
    ) -> None:
        """What a run on a candidate has taken, and how far it was from the other ways."""
        for copy, way in taken:
            for other in (each for pair in _NEIGHBOURS if way in pair for each in pair if each != way):
                level, margin = distance.get((copy, other), (1, 0.0))
                if level > 0:
                    continue
                if margin <= _TIE:
                    at_limit = self._at_limit.setdefault((copy, way, other), [])
                    at_limit += [candidate] if len(at_limit) < _MOST_TIES else []
                known = self.nearest.get((copy, way, other))
                if known is None or _goodness(margin) < _goodness(known[0]):
                    self.nearest[copy, way, other] = margin, candidate

    def tie(self, copy: Copy, way: str, other: str) -> Candidate | None:
        """A candidate just on an edge, from either side, where nothing is rounded; None if there is none yet."""
        for side in ((copy, way, other), (copy, other, way)):
            waiting = self._at_limit.get(side, [])
            while side not in self._exact and waiting:
                candidate = waiting.pop()
                if self._is_exact(candidate):
                    self._exact[side] = candidate
            if side in self._exact:
                return self._exact[side]
        return None

    def ties(self) -> list[Candidate]:
        """One for each edge that has one."""
        edges = {(copy, frozenset((way, other))): (copy, way, other) for copy, way, other in self.nearest}
        found = [self.tie(*side) for side in edges.values()]
        return [each for each in found if each is not None]

    def far(self) -> list[Side]:
        """The sides that no candidate is near to."""
        return [side for side, (margin, _) in self.nearest.items() if not _is_near(margin)]

    def untied(self) -> list[Side]:
        """The sides that no candidate is just on the edge of, from either."""
        return [side for side in self.nearest if self.tie(*side) is None]

    def near(self) -> Iterator[tuple[Side, Candidate]]:
        """The candidates that are near, with their sides."""
        for side, (margin, candidate) in self.nearest.items():
            if _is_near(margin):
                yield side, candidate

    def halve(self, run: Callable[[Candidate], object]) -> None:
        """Halve the way between the two sides of each edge.

        ``run`` runs the model on a candidate, and notes what it does; it gives False if there is no time left.
        """
        for copy, way, other in list(self.nearest):
            for i in range(_HALVINGS):
                here, there = self.nearest.get((copy, way, other)), self.nearest.get((copy, other, way))
                if here is None or there is None or (_is_near(here[0]) and _is_near(there[0])):
                    break
                middle = _between(here[1], there[1], _SHARES[i % len(_SHARES)])
                if middle is None or run(middle) is False:
                    break


def _goodness(margin: float) -> tuple[bool, float]:
    """The less, the better: near the edge, and not on it."""
    return margin < LEAST, margin


def _is_near(margin: float) -> bool:
    return LEAST <= margin <= MOST


def _between(one: Candidate, other: Candidate, share: float) -> Candidate | None:
    """What lies between two candidates; None if nothing does, or they are of different sizes."""
    found, moved = {}, False
    for name, value in one.items():
        end = other[name]
        if value.shape != end.shape:
            return None
        if value.is_floating_point() and not torch.equal(value, end):
            found[name] = value.double().lerp(end.double(), share).to(value.dtype)
            moved = True
        else:
            found[name] = value
    return found if moved else None
