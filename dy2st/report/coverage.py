"""The paths of several reports as one: what any of them took counts, wherever they staged the same construct."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dy2st.report.model import PathSite

if TYPE_CHECKING:
    from collections.abc import Iterable


def merged(sites: Iterable[PathSite]) -> tuple[PathSite, ...]:
    """One for each place in the source, in the order of files and lines, with all ways that were taken there."""
    by_place: dict[tuple[str, int, int, str], PathSite] = {}
    for site in sites:
        place = (site.file, site.line, site.column or 0, site.kind)
        known = by_place.get(place, site)
        by_place[place] = replace(
            known,
            ways=_both(known.ways, site.ways),
            taken=_both(known.taken, site.taken),
            accepted=_both(known.accepted, site.accepted),
        )
    return tuple(by_place[place] for place in sorted(by_place))


def counted(sites: Iterable[PathSite]) -> tuple[int, int]:
    """How many ways were taken, and of how many; a way that is accepted as it is counts only where it was taken."""
    taken = missing = 0
    for site in sites:
        taken += len(site.taken)
        missing += len(site.uncovered)
    return taken, taken + missing


def _both(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
