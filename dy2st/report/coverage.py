"""The paths of several reports as one: what any of them took counts, wherever they staged the same construct."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dy2st.report.model import PathCopy, PathSite

if TYPE_CHECKING:
    from collections.abc import Iterable


def merged(sites: Iterable[PathSite]) -> tuple[PathSite, ...]:
    """One for each place in the source, in the order of files and lines, with all ways that were taken there."""
    by_place: dict[tuple[str, int, int, str], PathSite] = {}
    for site in sites:
        place = (site.file, site.line, site.column or 0, site.kind)
        known = by_place.get(place, site)
        by_place[place] = _merged(known, site)
    return tuple(by_place[place] for place in sorted(by_place))


def _merged(one: PathSite, other: PathSite) -> PathSite:
    accepted = _both(one.accepted, other.accepted)
    if not one.copies and not other.copies:
        return replace(one, ways=_both(one.ways, other.ways), taken=_both(one.taken, other.taken), accepted=accepted)
    copies: dict[str, PathCopy] = {}
    for site in (one, other):
        for copy in site.copies or (PathCopy("", site.ways, site.taken),):
            known = copies.get(copy.name, copy)
            copies[copy.name] = PathCopy(copy.name, _both(known.ways, copy.ways), _both(known.taken, copy.taken))
    place = one.file, one.line, one.column, one.kind, one.source
    return PathSite.of_copies(*place, tuple(copies.values()), accepted)


def counted(sites: Iterable[PathSite]) -> tuple[int, int]:
    """How many ways were taken, and of how many; a way that is accepted as it is counts only where it was taken."""
    taken = missing = 0
    for site in sites:
        for copy in site.copies or (site,):
            taken += len(copy.taken)
            missing += sum(way not in copy.taken and way not in site.accepted for way in copy.ways)
    return taken, taken + missing


def _both(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
