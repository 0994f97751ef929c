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
    from dy2st.parity.margins import Distance
    from dy2st.parity.space import Candidate, Space
    from dy2st.staging.routes import Copy

    # Runs the model on a candidate, and says how far it is from a way of a copy; None if there is no time left.
    Run = Callable[[Candidate, tuple[Copy, str]], Distance | None]

_GRID, _FINE = 0.25, 2.0**-10
# How often each edge is tried.
_TRIES = 6


def seek_ties(edges: Edges, space: Space, run: Run) -> None:
    """Come to each edge that no candidate is on; ``edges`` has what is found."""
    for copy, way, other in edges.untied():
        target = copy, other
        candidate = space.on_grid(edges.nearest[copy, way, other][1], _GRID)
        for number in range(_TRIES):
            here = run(candidate, target)
            changed = space.stepped(candidate, _GRID)
            there = run(changed, target)
            if edges.tie(copy, way, other) is not None:
                break
            if here is not None and there is not None and here[0] == there[0] == 0 and here[1] != there[1]:
                moved = space.moved(candidate, changed, here[1] / (here[1] - there[1]))
                if moved is not None:
                    run(space.on_grid(moved, _FINE), target)
            candidate = changed if number % 2 else space.on_grid(space.changed(candidate), _GRID)
