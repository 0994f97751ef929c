"""Where the paths of a program part: the staged branches and loops, by their place in the user's source.

Of an ``and`` or ``or`` each side has to decide once, or a wrong limit on one side would never show.
Source: Chilenski & Miller, "Applicability of modified condition/decision coverage to software testing", 1994 (masking,
for operators that stop at the side which decides).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from dy2st.errors import Location
from dy2st.staging.routes import AROUND, Copy, Route, numbered

OWN = str(Path(__file__).absolute().parents[1])
ARMS = ("then", "else")
TRIPS = ("no trip", "one trip", "more trips")
# A loop that a jump may leave, and that ran to the end of what it iterates over.
ALL_TRIPS = "all trips"
# Which operand of an ``and`` or ``or`` decides it: the arms of what asks for its truth don't tell.
DECIDES = {"and": ("left false", "right false"), "or": ("left true", "right true")}
# Where none decides.
UNDECIDED = {"and": "both true", "or": "both false"}
_ORDER = (*ARMS, *TRIPS, ALL_TRIPS, *DECIDES["and"], *DECIDES["or"])
# A comment that says which ways of a line need not be covered: all of them, or those in brackets.
ACCEPTED = re.compile(r"#.*\bdy2st: uncovered ok\b\s*(?:\(([^()]*)\))?")
# What the brackets may say.
SHORT_WAYS = {"0": TRIPS[0], "1": TRIPS[1], "many": TRIPS[2], "all": ALL_TRIPS}

Site = tuple[str, int, int | None, str]


def site_of(location: Location, kind: str) -> Site:
    """What identifies a construct: its file, line and column, and ``if``, ``loop``, ``and`` or ``or``."""
    return location.filename, location.line, location.column, kind


def accepted_ways(text: str, ways: tuple[str, ...]) -> tuple[str, ...]:
    """Those of a line's ways that its comment ``# dy2st: uncovered ok`` or ``(else)``, ``(0, many)`` takes out."""
    found = ACCEPTED.search(text)
    if found is None or found[1] is None:
        return ways if found else ()
    named = {SHORT_WAYS.get(name.strip(), name.strip()) for name in found[1].split(",")}
    return tuple(way for way in ways if way in named)


@dataclass
class Sites:
    """The copies of constructs that one capture staged, each with its line and the ways that it can go."""

    found: dict[Copy, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def of(self, frame: FrameType) -> Sites:
        """Where the constructs of a frame are noted; those of code around the user's are no paths that eager has."""
        return Sites() if frame.f_code.co_filename in AROUND else self

    def branch(self, location: Location, route: Route, visits: Counter[Any]) -> None:
        """An ``if`` or a ternary on a tensor, and the way to it; ``visits`` are those of the graph that it is in."""
        self._note(location, "if", ARMS, route, visits)

    def loop(
        self,
        location: Location,
        route: Route,
        visits: Counter[Any],
        *,
        fewest: int,
        trips: object,
        jumps: bool,
        left: bool,
    ) -> tuple[str, ...]:
        """A loop whose test, length or jumps a tensor decides; ``trips`` is an int if Python knows the most of them.

        ``fewest`` is 1 or 2 if there are at least as many trips for all sizes that are declared, else 0. ``left`` says
        that it is a ``for`` which a staged jump may leave before the end. The ways that it can go here.
        """
        ways = TRIPS[fewest:]
        if isinstance(trips, int):
            most = TRIPS[min(trips, 2)]
            ways = ways[: ways.index(most) + 1] if jumps and most in ways else (most,)
        ways = (*ways, ALL_TRIPS) if left else ways
        self._note(location, "loop", ways, route, visits)
        return ways

    def operands(self, location: Location, route: Route, visits: Counter[Any]) -> Copy | None:
        """An ``and`` or ``or`` whose left operand is a tensor's; the copy that it is."""
        if (location.text or "").lstrip().startswith("case "):  # each part of a pattern is an operand there
            return None
        return self._note(location, location.construct, DECIDES[location.construct], route, visits)

    def keep(self, copy: Copy, ways: tuple[str, ...]) -> None:
        """No more than these ways are possible; of none nothing is left."""
        if copy in self.found:
            text, known = self.found[copy]
            self.found[copy] = text, tuple(way for way in known if way in ways)
            if not ways:
                del self.found[copy]

    def forget(self, known: int) -> None:
        """Keep the first so many copies: what was traced since is traced in another way, or not at all."""
        for copy in list(self.found)[known:]:
            del self.found[copy]

    def _note(
        self, location: Location, kind: str, ways: tuple[str, ...], route: Route, visits: Counter[Any]
    ) -> Copy | None:
        text = (location.text or "").strip()
        if location.filename.startswith((OWN, "<")):
            return None
        site = site_of(location, kind)
        copy = (*site, numbered(visits, site, route))
        known = self.found.get(copy)
        # It may be traced with other lengths: what is possible for one of them is possible.
        self.found[copy] = text, tuple(way for way in _ORDER if way in ways or (known and way in known[1]))
        return copy
