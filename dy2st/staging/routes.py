"""The way to a construct: through which calls, and in which iterations of the loops that Python carries out.

A condition inside of an unrolled loop, or in a helper that is called twice, is several branches of a program, on one
line of the source. Each of them is a *copy*: the construct's place, and the route to it. A route is the same in a
capture and in eager code that runs converted, but that an iteration of a staged loop has no number in a capture: its
step there is that of any iteration.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

from dy2st.source.rewriting import is_rewritten_code
from dy2st.source.user_frames import frames, location_of

# Files of ours with code that stands around the user's and is no step to it.
AROUND: set[str] = set()
# What the passes call the variable that a loop statement keeps itself in, with its line.
_LOOP = re.compile(r"loop_(\d+)(?:_(\d+))?\Z")
_TARGET = re.compile(r"\s*(?:async\s+)?for\s+(.+?)\s+in\b")


class Call(NamedTuple):
    """A call of a function of the user's."""

    file: str
    line: int
    column: int | None


class Trip(NamedTuple):
    """An iteration of a loop: the first is 0; None for all that are one in the program. ``target`` is what it binds."""

    file: str
    line: int
    column: int | None
    number: int | None
    target: str


class Again(NamedTuple):
    """How often the same route has been taken before: by a comprehension, or by what calls a function over and over."""

    times: int


Step = Call | Trip | Again
Route = tuple[Step, ...]
# File, line and column of a construct, its kind, and the way to it.
Copy = tuple[str, int, int | None, str, Route]


def route_to(frame: FrameType, construct: Any = None) -> Route:
    """The way to what a frame of the user's is about to do; ``construct`` is the loop itself, if it is one."""
    found: list[list[Step]] = []
    for each in frames(frame):
        if not is_rewritten_code(each.f_code) or each.f_code.co_filename in AROUND:
            continue
        steps: list[Step] = list(_trips(each, construct))
        if each is not frame:
            place = location_of(each)
            steps.append(Call(place.filename, place.line, place.column))
        found.append(steps)
    return tuple(step for steps in reversed(found) for step in steps)


def numbered(visits: Counter[Any], place: Any, route: Route) -> Route:
    """A route, with how often it has led to a place before; ``visits`` counts that."""
    times = visits[place, route]
    visits[place, route] += 1
    return (*route, Again(times)) if times else route


def _trips(frame: FrameType, construct: Any) -> Iterator[Step]:
    """The iterations of its loops that a frame is in, the outermost first."""
    names = _loops_of(frame.f_code)
    variables = frame.f_locals if names else {}
    for name in names:
        loop: Any = variables.get(name)
        if loop is not construct and getattr(loop, "active", False):  # not one that the observer knows nothing of
            place = loop.location
            target = _TARGET.match(place.text or "")
            yield Trip(place.filename, place.line, place.column, loop.position, "" if target is None else target[1])


@functools.lru_cache(maxsize=1024)
def _loops_of(code: CodeType) -> list[str]:
    """The variables of rewritten code that hold loops, the outermost first."""
    matches = [found for name in code.co_varnames + code.co_cellvars if (found := _LOOP.match(name))]
    return [found[0] for found in sorted(matches, key=lambda each: (int(each[1]), int(each[2] or 0)))]


class Copies:
    """The copies that a program has, told by the routes of a capture."""

    def __init__(self, staged: Iterable[Copy]) -> None:
        self._by_place: dict[Any, dict[Any, list[Copy]]] = defaultdict(lambda: defaultdict(list))
        for copy in staged:
            route, _ = _parted(copy[4])
            self._by_place[copy[:4]][route].append(copy)

    def of(self, copy: Copy) -> Copy | None:
        """The copy that a run of eager code has come to; None if the program decides that otherwise."""
        routes = self._by_place.get(copy[:4])
        if routes is None:
            return None
        route, times = _parted(copy[4])
        alike = [each for each in routes if _matches(route, each)]
        if not alike:
            return None
        # The one that numbers most of its iterations is nearest: the first iteration may be one of its own.
        found = routes[
            min(alike, key=lambda each: sum(isinstance(step, Trip) and step.number is None for step in each))
        ]
        # In a staged comprehension all elements are one; else there are as many as there are elements.
        return sorted(found, key=lambda each: _parted(each[4])[1])[times % len(found)]


def _parted(route: Route) -> tuple[Route, int]:
    last = route[-1] if route else None
    return (route[:-1], last.times) if isinstance(last, Again) else (route, 0)


def _matches(route: Route, captured: Route) -> bool:
    if len(route) != len(captured):
        return False
    return all(
        one == other
        or (isinstance(one, Trip) and isinstance(other, Trip) and other.number is None and one[:3] == other[:3])
        for one, other in zip(route, captured, strict=True)
    )


def labels(copies: Iterable[Copy]) -> dict[Copy, str]:
    """For each of several copies of one construct, what tells it from the others; nothing for a single one.

    That are the iterations, and where these don't tell, the calls.
    """
    parted = {copy: _parted(copy[4]) for copy in copies}
    if len(parted) < 2:
        return dict.fromkeys(parted, "")
    common = set.intersection(*(set(route) for route, _ in parted.values()))
    repeated = {route for route, times in parted.values() if times}
    whole: dict[Copy, str] = {}
    short: dict[Copy, str] = {}
    for copy, (route, times) in parted.items():
        own = [step for step in route if step not in common]
        last = [f"element {times}"] if route in repeated else []
        whole[copy] = ", ".join(dict.fromkeys([*map(_words, own), *last]))
        short[copy] = ", ".join([*(_words(step) for step in own if isinstance(step, Trip)), *last])
    found = list(short.values())
    texts = {copy: text if text and found.count(text) == 1 else whole[copy] for copy, text in short.items()}
    texts = {copy: text or "first time" for copy, text in texts.items()}
    again = [text for text in texts.values() if list(texts.values()).count(text) > 1]
    return {copy: f"{text}, copy {i}" if text in again else text for i, (copy, text) in enumerate(texts.items())}


def _words(step: Step) -> str:
    if isinstance(step, Trip) and step.number is None:
        return f"further iterations of line {step.line}"
    if isinstance(step, Trip):
        named = step.target.isidentifier()
        return f"{step.target} {step.number}" if named else f"iteration {step.number} of line {step.line}"
    return f"called at line {step.line}" if isinstance(step, Call) else f"element {step.times}"


def by_construct(found: Mapping[Copy, Any]) -> dict[tuple[str, int, int | None, str], list[Copy]]:
    """The copies of each construct, in their order."""
    made: dict[tuple[str, int, int | None, str], list[Copy]] = {}
    for copy in found:
        made.setdefault(copy[:4], []).append(copy)
    return made
