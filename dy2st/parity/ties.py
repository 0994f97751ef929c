"""Inputs on which a condition is just at its limit: they alone tell ``<`` from ``<=``.

What is computed from multiples of 1/4 is often exact. So the values of an input are put on such a grid, one step is
taken there, and the secant through the two distances says where the condition has its limit. Whether a tie is a matter
of luck, since numbers are rounded on the way to it, is not said here (:mod:`dy2st.parity.exact_runs`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dy2st.parity.edges import Edges

if TYPE_CHECKING:
    from dy2st.parity.edges import Side
    from dy2st.parity.space import Candidate, Space

    # Runs the model on a candidate, and says how far it is from the edge of a side, below zero if it is beyond; None if
    # that is not known, or there is no time left.
    Run = Callable[[Candidate, Side], float | None]

_GRID, _FINE = 0.25, 2.0**-10
# How often each edge is tried.
_TRIES = 16


def seek_ties(edges: Edges, space: Space, run: Run) -> None:
    """Come to each edge that no candidate is on; ``edges`` has what is found."""
    for side in edges.untied():
        candidate = space.on_grid(edges.nearest[side][1], _GRID)
        for number in range(_TRIES):
            here = run(candidate, side)
            changed = space.stepped(candidate, _GRID)
            there = run(changed, side)
            if edges.tie(*side) is not None:
                break
            if here is not None and there is not None and here != there:
                moved = space.moved(candidate, changed, here / (here - there))
                if moved is not None:
                    run(space.on_grid(moved, _FINE), side)
            candidate = changed if number % 2 else space.on_grid(space.changed(candidate), _GRID)
