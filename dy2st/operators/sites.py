"""Where the paths of a program part: the staged branches and loops, by their place in the user's source."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dy2st.errors import Location

OWN = str(Path(__file__).absolute().parents[1])
ARMS = ("then", "else")
TRIPS = ("no trip", "one trip", "more trips")
# A comment that takes a line out of what has to be covered.
NOT_REQUIRED = "dy2st: no cover"

Site = tuple[str, int, int | None, str]


def site_of(location: Location, kind: str) -> Site:
    """What identifies a construct: its file, line and column, and ``if`` or ``loop``."""
    return location.filename, location.line, location.column, kind


@dataclass
class Sites:
    """The constructs that one capture staged, each with its line and the ways that it can go."""

    found: dict[Site, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def branch(self, location: Location) -> None:
        """An ``if`` or a ternary on a tensor."""
        self._note(location, "if", ARMS)

    def loop(self, location: Location, *, at_least_once: bool, trips: object, jumps: bool) -> None:
        """A loop whose test, length or jumps a tensor decides; ``trips`` is an int if Python knows the most of them."""
        ways = TRIPS[1 if at_least_once else 0 :]
        if isinstance(trips, int):
            most = TRIPS[min(trips, 2)]
            ways = ways[: ways.index(most) + 1] if jumps and most in ways else (most,)
        self._note(location, "loop", ways)

    def _note(self, location: Location, kind: str, ways: tuple[str, ...]) -> None:
        text = (location.text or "").strip()
        if location.filename.startswith((OWN, "<")) or NOT_REQUIRED in text:
            return
        site = site_of(location, kind)
        known = self.found.get(site)
        # The same line may be reached with other lengths: what is possible for one of them is possible.
        self.found[site] = text, tuple(w for w in (*ARMS, *TRIPS) if w in ways or (known and w in known[1]))
