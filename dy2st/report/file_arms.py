"""The arms of an ONNX file's own branches and loops, with what the inputs took of them.

A line of the source may be several nodes of the file: a helper that is called twice, a loop that is unrolled. What a
check proves of a file is what runs in each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dy2st.report.model import InputResult, PathSite

THEN, ELSE = "then", "else"
NO_TRIP, ONE_TRIP, MORE_TRIPS = "no trip", "one trip", "more trips"
# That the body of a loop has run at all.
SOME_TRIP = "a trip"
_WAYS = {"If": (THEN, ELSE)}


@dataclass(frozen=True)
class FileSite:
    """An ``If``, ``Loop``, ``Scan`` or ``SequenceMap`` of a file.

    ``node`` is its name, ``inside`` the arms around it, from the outermost on, each the name of a node and ``then``,
    ``else`` or ``body``. ``file``, ``line``, ``column`` and ``source`` are the user's line that it stands for, and
    ``construct`` what it is there (``if``, ``loop``, ``and``), as far as the file says. ``demanded`` are the ways that
    some input has to take, ``accepted`` those that the comment ``# dy2st: uncovered ok`` on the line takes out.
    ``taken`` has the names of the inputs that took each way.
    """

    node: str
    op: str
    inside: tuple[tuple[str, str], ...] = ()
    file: str = ""
    line: int | None = None
    column: int | None = None
    construct: str = ""
    source: str = ""
    demanded: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    taken: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways that are counted."""
        return _WAYS.get(self.op, (NO_TRIP, ONE_TRIP, MORE_TRIPS))

    def takers(self, way: str) -> tuple[str, ...]:
        """The inputs that took a way; of a loop's body, those for which it ran."""
        if way not in (SOME_TRIP, "body"):
            return self.taken.get(way, ())
        return tuple(dict.fromkeys((*self.taken.get(ONE_TRIP, ()), *self.taken.get(MORE_TRIPS, ()))))

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The ways that no input took, and some should have."""
        return tuple(way for way in self.demanded if way not in self.accepted and not self.takers(way))

    @property
    def where(self) -> str:
        """``If at models.py:14 (node If_12, then-arm of If_3)``."""
        at = "" if self.line is None else f" at {self.file}:{self.line}"
        around = "".join(f", {_arm(way)} of {name}" for name, way in reversed(self.inside))
        return f"{self.op}{at} (node {self.node}{around})"

    def missed(self, ways: Iterable[str] | None = None) -> list[str]:
        """One line for each way that no input took, and some should have."""
        return [f"file: {self.where}: {words_for(way)}" for way in (self.uncovered if ways is None else ways)]


def words_for(way: str) -> str:
    """What is said of a way that never ran."""
    words = {THEN: "its then-arm never ran", ELSE: "its else-arm never ran", SOME_TRIP: "its body never ran"}
    return words.get(way, f"it never ran with {way}")


def _arm(way: str) -> str:
    return way if way == "body" else f"{way}-arm"


def untaken(sites: Sequence[FileSite], paths: Iterable[PathSite] = ()) -> list[tuple[FileSite, str]]:
    """The ways of a file that no input took and some should have, each told once.

    What lies in an arm that never ran is not told beside it, nor what ``paths`` tell of a line already: that no copy of
    it took a way.
    """
    told = {(site.file, site.line, site.column, site.kind, way) for site in paths for way in site.uncovered}
    # Where the left side decides, the right one does not run.
    told |= {(*each[:4], {"left false": ELSE, "left true": THEN}[each[4]]) for each in told if each[4][:4] == "left"}
    # what is behind the first iterations of a loop runs where that loop makes more trips
    told |= {(*each[:4], SOME_TRIP) for each in told if each[4] == MORE_TRIPS}
    by_node = {site.node: site for site in sites}
    found = []
    for site in sites:
        if any(_is_known(by_node.get(name), way) for name, way in site.inside):
            continue
        place = site.file, site.line, site.column, site.construct
        found += [(site, way) for way in site.uncovered if (*place, way) not in told]
    return found


def untaken_lines(sites: Sequence[FileSite], paths: Iterable[PathSite] = ()) -> list[str]:
    """One line for each of these ways."""
    return [line for site, way in untaken(sites, paths) for line in site.missed([way])]


def _is_known(site: FileSite | None, way: str) -> bool:
    """Whether an arm never ran, and that is told, or accepted."""
    if site is None or site.takers(way):
        return False
    demanded = {SOME_TRIP, ONE_TRIP, MORE_TRIPS} if way == "body" else {way}
    return bool(demanded & {*site.demanded, *site.accepted})


def merged_arms(reports: Iterable[Sequence[FileSite]], names: Sequence[str] = ()) -> tuple[FileSite, ...]:
    """The arms of one file, counted on several shares of the inputs, as one; ``names`` are those of all, in order."""
    order = {name: place for place, name in enumerate(names)}
    by_node: dict[str, FileSite] = {}
    for sites in reports:
        for site in sites:
            known = by_node.get(site.node, site)
            both = {way: {*known.takers(way), *site.takers(way)} for way in site.ways}
            taken = {way: tuple(sorted(each, key=lambda n: order.get(n, len(order)))) for way, each in both.items()}
            by_node[site.node] = replace(known, taken={way: each for way, each in taken.items() if each})
    return tuple(by_node.values())


def blamed_inputs(sites: Sequence[FileSite], results: Iterable[InputResult]) -> str:
    """One line on the arm that all inputs take on which the file differs, and none on which it does not.

    Empty if there is none. The outermost such arm is told: what lies in it is taken by the same inputs.
    """
    results = [result for result in results if not result.problem and not result.raises]
    passing = {result.name for result in results if result.outcome == "equal"}
    failing = {result.name for result in results} - passing
    if not failing or not passing:
        return ""
    for site in sites:
        for way in site.ways if site.op == "If" else (SOME_TRIP, *site.ways):
            takers = set(site.takers(way))
            if takers >= failing and not takers & passing:
                return f"{_who(len(failing))} {_takes(site, way, len(failing))}; no input that passes does"
    return ""


def _who(count: int) -> str:
    return "the one failing input" if count == 1 else f"all {count} failing inputs"


def _takes(site: FileSite, way: str, count: int) -> str:
    at = "" if site.line is None else f" at {site.file}:{site.line}"
    s = "s" if count == 1 else ""
    if site.op == "If":
        return f"take{s} the {way}-arm{at} (node {site.node})"
    what = "one or more trips" if way == SOME_TRIP else way
    return f"run{s} {'the' if at else 'a'} {site.op}{at} (node {site.node}) with {what}"
