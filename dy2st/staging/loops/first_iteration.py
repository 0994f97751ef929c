"""The first iteration of a loop, taken out of it where it builds what the others go on with (``dy2st.plan``).

The loop behind it is one like any other. Where it may have no iteration at all, the whole of it runs in an arm, under
the condition that it has one.
"""

from __future__ import annotations

from typing import Any

from dy2st.plan import plan
from dy2st.staging.branches.paths import guard_rest
from dy2st.staging.conditions import negated
from dy2st.staging.flow import Flow
from dy2st.staging.loops.template import LoopStatement
from dy2st.staging.routes import route_to


class FirstIteration:
    """Of one run of a loop statement."""

    def __init__(self, loop: LoopStatement) -> None:
        self.loop = loop
        # Whether it is to be taken out, once it is known that the loop is staged.
        self.due = not loop.yields and plan().peels(loop.site)
        # Once it is: whether the whole loop has one for certain, and how often that runs.
        self.whole: tuple[bool, Any] | None = None
        # How many arms the rest of the loop is traced in.
        self.arms = 0
        # The jump over the loop, where it has no iteration.
        self.skipped: tuple[str, Any] = ("stop", loop)

    def take_apart(self, go: Any, *, once: bool, trips: Any) -> None:
        """It begins; unless it takes place for certain (``once``), all of the loop is an arm under ``go``."""
        loop = self.loop
        self.due = loop.restartable = False
        self.whole = once, trips
        if not once:
            # Python may end it before it is staged.
            visits = loop.capture.trace_frames[-1].visits
            route = route_to(loop.frame, loop)
            sites = loop.capture.sites.of(loop.frame)
            sites.loop(loop.location, route, visits, fewest=0, trips=1, jumps=True, left=False)
            guard_rest(loop.capture, Flow(loop.environment(), {self.skipped: negated(go)}), loop.location)

    def over(self) -> None:
        """What follows it is a loop like any other, maybe in an arm."""
        loop = self.loop
        if self.whole is not None:
            self.arms += loop.capture.depth - loop.depth
            loop.depth = loop.capture.depth
            loop.restartable = not loop.unrolled
