"""How often a loop runs: the bound that ``at_most`` promises, and the copies that a native loop makes of its body."""

from __future__ import annotations

from typing import Any

import torch

from dy2st.errors import Location
from dy2st.staging.conditions import either, negated
from dy2st.staging.loops.hinted import Hinted, warn_of_copies
from dy2st.staging.session import Session

TOO_OFTEN = "this loop runs more often than at_most says"


class LoopLimits:
    """What is counted of one run of a loop statement; ``limit`` is what ``at_most`` leaves of it."""

    def __init__(self, capture: Session, location: Location) -> None:
        self.capture, self.location = capture, location
        self.limit: int | None = None
        self.copies = self.first_node = 0

    def promise(self, hint: Hinted, done: int, go: Any) -> None:
        """``at_most`` bounds what is left of the loop after ``done`` iterations."""
        if hint.limit is None:
            return
        self.limit = hint.limit - done
        if self.limit < 1:
            self.limit = 0
            self.capture.guards.require(negated(go), self.location, TOO_OFTEN, always=True)

    def bounded(self, go: Any, counter: torch.Tensor) -> Any:
        """The test after an iteration; going on behind the last one that was promised fails."""
        if self.limit is not None and go is not False:
            within = counter + 1 < self.limit
            ok = either(within, negated(go))
            self.capture.guards.require(ok, self.location, TOO_OFTEN, always=True)
        return go

    def count(self, more: bool) -> None:
        """Count the copies that a native loop makes of its body; warn of many when there are no more."""
        nodes = len(self.capture.subgraph.graph.nodes)
        if self.copies == 0:
            self.first_node = nodes
        if more:
            self.copies += 1
        else:
            warn_of_copies(self.copies, nodes - self.first_node, self.location)
