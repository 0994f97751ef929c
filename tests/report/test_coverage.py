"""The paths of several reports as one."""

from __future__ import annotations

from dy2st.report.coverage import counted, merged
from dy2st.report.model import PathSite

ARMS = ("then", "else")
TRIPS = ("no trip", "one trip", "more trips")


def test_ways_add_up_by_place():
    first = PathSite("b.py", 3, 4, "if", "if a:", ARMS, ("then",))
    other = PathSite("b.py", 3, 9, "if", "a if b else c", ARMS, ("else",))
    loop = PathSite("a.py", 9, None, "loop", "while a:  # dy2st: uncovered ok (0)", TRIPS, ("one trip",), ("no trip",))
    again = PathSite("b.py", 3, 4, "if", "if a:", ARMS, ("else",))
    sites = merged([first, loop, other, again])
    assert [(site.file, site.column, site.taken) for site in sites] == [
        ("a.py", None, ("one trip",)),
        ("b.py", 4, ARMS),
        ("b.py", 9, ("else",)),
    ]
    assert counted(sites) == (4, 6)
    assert counted(merged([loop, PathSite("a.py", 9, None, "loop", loop.source, TRIPS, ("no trip",))])) == (2, 3)


def test_nothing():
    assert merged([]) == ()
    assert counted([]) == (0, 0)
