"""A search for inputs that take the paths which no input takes yet: boundary values, then hill climbing.

The predicates are known: each run tells how far every condition was from its other answer. The input that came
nearest to a path is changed, a change that brings it nearer is kept and repeated, and the secant through two distances
says where the condition should flip. What is tried depends on the seed and on what the model does with it, never on
the time, unless the time runs out.
Source: Korel, "Automated software test data generation", 1990; McMinn, "Search-based software test data generation: a
survey", 2004 (approach level, branch distance, pattern moves).
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from dy2st.capture.observing import Listener, observing
from dy2st.capture.program import CAPTURING
from dy2st.parity.causes import decides_exactly
from dy2st.parity.decisions import Decisions, Following, Pair
from dy2st.parity.edges import Edges, Side
from dy2st.parity.found_inputs import Found, way_name
from dy2st.parity.gradient_mode import gradients_as_asked
from dy2st.parity.inputs import InputSet, sequence_of
from dy2st.parity.long_streams import Streams
from dy2st.parity.margins import FAR, Distance, Margins
from dy2st.parity.raising import is_guarded
from dy2st.parity.space import Candidate, Space
from dy2st.parity.stages import SEED, eager_reference, raised_at
from dy2st.parity.state import preserved
from dy2st.parity.stateful_calls import called
from dy2st.parity.ties import seek_ties
from dy2st.parity.undefined_casts import converts_undefined
from dy2st.staging.routes import Copies, Copy
from dy2st.staging.sites import ALL_TRIPS, ARMS, DECIDES, TRIPS, UNDECIDED

Target = tuple[Copy, str]

EVALUATIONS = 1000
_FAR: Distance = (1000, FAR)
# The level of what says only how many trips there were.
_TRIPS_OFF = 100
# Where a climb starts anew from something else that has reached the place.
_PATIENCE = 40
# From how many candidates, that take other ways, a climb starts in turn.
_STARTS = 4
# How often a candidate is changed to come nearer to where a condition flips.
_APPROACHES = 24
# What is drawn to compare a file on more sets.
_KINDS = ("random", "wide", "grid", "any")
# Each so-manieth of these has NaN or infinity in one place.
_SPECIAL = 8
# How often something else altogether is tried in between.
_FRESH = 5


@dataclass
class Trace:
    """What one run did: the ways that were taken, and how far it was from the others."""

    taken: set[Target]
    distance: dict[Target, Distance]
    # Which decisions followed one another.
    pairs: set[Pair] = field(default_factory=set)


# An input that makes a loop run longer is not used: the loop may never end.
_MOST_TRIPS = 10_000
# Nor is one that is there by chance, where one more trip than these tells nothing new.
_MOST_TRIPS_BY_CHANCE = 300


class _EndlessError(Exception):
    """A loop does not end."""


class _Distances(Listener):
    """Hears every question and keeps the least distance to each way."""

    def __init__(self, margins: Margins, copies: Copies, most_trips: int = _MOST_TRIPS) -> None:
        self.margins, self.copies, self.most_trips = margins, copies, most_trips
        self.least: dict[Target, Distance] = {}
        self.last: list[Target] = []
        self.following = Following()

    def branch(self, site: Copy, way: str) -> None:
        """An ``if`` has gone one way: the other was as far as its margin."""
        self.last = [(site, way)]
        self._decided(site, way)
        self._near((site, ARMS[way == ARMS[0]]), self.margins.taken())

    def operand(self, site: Copy, *, right: bool, decides: bool) -> None:
        """To get to the right operand, the left one must not decide: that is a level away."""
        self._decided(site, f"{right} {decides}")
        margin, ways, neither = self.margins.answered(), DECIDES[site[3]], UNDECIDED[site[3]]
        if not decides:
            self._near((site, ways[right]), (0, margin))
            return
        self._near((site, neither), (0, margin))
        if not right:
            self._near((site, ways[1]), (1, margin))

    def test(self, site: Copy, trips: int, going: bool) -> None:
        """To end after ``n`` trips, the first ``n`` tests say yes and the next says no."""
        if trips > self.most_trips:
            raise _EndlessError
        self._decided(site, f"{going}")
        level, margin = self.margins.taken()
        if going and trips < 2:  # noqa: PLR2004 - more trips
            self._near((site, TRIPS[trips]), (level, margin))
        if not going:
            for more in range(trips + 1, 3):
                self._near((site, TRIPS[more]), (level + more - trips - 1, margin))

    def ended(self, site: Copy, trips: int) -> None:
        """How many trips are missing or too many."""
        self._decided(site, TRIPS[min(trips, 2)])
        for wanted, way in enumerate(TRIPS):
            self._near((site, way), (_TRIPS_OFF, abs(trips - wanted)))
        self._near((site, ALL_TRIPS), (_TRIPS_OFF, 1 / (1 + trips)))

    def number(self, function: Any) -> Any:
        """``int`` and ``float`` of a tensor: a number that keeps its margins."""
        return self.margins.tracking(function)

    def _decided(self, observed: Copy, what: str) -> None:
        copy = self.copies.of(observed)
        if copy is not None:
            self.following.decided((copy, what))

    def _near(self, observed: Target, distance: Distance) -> None:
        copy = self.copies.of(observed[0])
        if copy is None:
            return
        target = copy, observed[1]
        self.least[target] = min(distance, self.least.get(target, _FAR))


def traced(
    model: Any, inputs: InputSet, copies: Copies, guards: Sequence[str] = (), *, most_trips: int = _MOST_TRIPS
) -> Trace | None:
    """Run the model, converted but eager, and listen; None if it raises, or a loop makes more trips than these.

    Where it raises for one of the ``guards``, the last way that an ``if`` has gone is what counts as taken.
    """
    margins = Margins()
    distances = _Distances(margins, copies, most_trips)
    given = inputs.copied()
    try:
        with CAPTURING, observing(distances) as observer, gradients_as_asked(model), preserved(model):  # noqa: SIM117  one line would be too long
            with torch.random.fork_rng(devices=[]), margins:
                torch.manual_seed(SEED)
                called(observer.call, model)(*given.args, **given.kwargs)
    except Exception as error:  # noqa: BLE001 - an input that eager rejects is none
        if not is_guarded(raised_at(error), guards):
            return None
        return Trace(_told(copies, distances.last), distances.least, distances.following.pairs)
    taken = _told(copies, ((site, way) for site, ways in observer.taken.items() for way in ways))
    return Trace(taken, distances.least, distances.following.pairs)


def _told(copies: Copies, observed: Iterable[Target]) -> set[Target]:
    return {(copy, way) for each, way in observed if (copy := copies.of(each)) is not None}


class Search:
    """One search for ways of a program's ``copies`` of constructs; ``guards`` are those of the program.

    ``others`` is how many sets there are to be in ``more``; ``streams`` are those of a model with state.
    """

    def __init__(
        self,
        model: Any,
        space: Space | None,
        copies: Copies,
        targets: Iterable[Target],
        *,
        evaluations: int = EVALUATIONS,
        seconds: float | None = None,
        more: Iterable[InputSet] = (),
        guards: Sequence[str] = (),
        others: int = 0,
        streams: Streams | None = None,
    ) -> None:
        self.model, self.space, self.more, self.guards = model, space, more, guards
        self.copies, self.targets = copies, dict.fromkeys(targets)
        self.limit, self.others, self.streams = evaluations, others, streams
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.more_seconds = 0.0 if seconds is None else seconds / 2
        self.found = Found()
        # What has come nearest to each target, by the ways that it takes: what is nearest of all may lead nowhere.
        self.best: dict[Target, dict[frozenset[Target], tuple[Distance, Candidate]]] = {}
        self.edges = Edges(self._decides_exactly)
        self.decisions = Decisions()

    def run(self, start: Iterable[InputSet] = ()) -> Found:
        """Search until nothing is missing or the budget is spent; ``start`` are the sets that there are."""
        for inputs in self.more:
            if self._goes_on():
                self._keep(inputs, traced(self.model, inputs, self.copies, self.guards), None)
        if self.space is not None:
            start = list(start)
            self._search(self.space, start)
            self._reach()
            # Of paths that nothing reaches, the rest does not pay the price.
            self.limit += max(self.limit // 2, 1)
            if self.deadline is not None:
                self.deadline += self.more_seconds
            self._sharpen(self.space, start)
            seek_ties(self.edges, self.space, partial(self._beyond, self.space))
            self.found.more = self._more(self.space)
        self.found.missing = len(self.targets)
        return self.found

    def _reach(self) -> None:
        """What three calls do not take, many may."""
        end = math.inf if self.deadline is None else time.monotonic() + self.more_seconds
        streams = (
            ()
            if self.streams is None
            else self.streams.reaching(self.targets, self.copies, lambda: time.monotonic() < end)
        )
        for new, calls in streams:
            names = [way_name(*target) for target in new]
            self.found.streams.append(sequence_of(names[0], calls))
            self.found.reached += names
            for target in new:
                del self.targets[target]

    def _beyond(self, space: Space, candidate: Candidate, side: Side) -> float | None:
        """How far a candidate is from the edge of a side, and below zero if it is on the other one."""
        trace = self._traced(space, candidate) if self._has_time() else None
        for way, sign in ((side[2], 1), (side[1], -1)):
            level, margin = _FAR if trace is None else trace.distance.get((side[0], way), _FAR)
            if level <= 0:
                return sign * margin
        return None

    def _more(self, space: Space) -> list[InputSet]:
        """What is on an edge, what follows on something else as nowhere before, boundary values, changes and chance."""
        seen = self.decisions.kept
        boundary = itertools.islice(space.boundary(), self.others // 4)
        kept = [*self.edges.ties(), *seen, *boundary][: self.others]
        for number in range(self.others - len(kept)):
            drawn = space.changed(space.random.choice(seen)) if seen and number % 2 else space.fresh(_KINDS)
            kept.append(self._special(space, drawn) if number % _SPECIAL == _SPECIAL - 1 else drawn)
        end = math.inf if self.deadline is None else time.monotonic() + self.more_seconds
        sets = (space.as_set(f"more_{number}", candidate) for number, candidate in enumerate(kept))
        return [each for each in sets if time.monotonic() < end and self._ends(each)]

    def _special(self, space: Space, candidate: Candidate) -> Candidate:
        """The same with NaN or infinity in it, if eager then ends, gives more than NaN, and makes no integer of it."""
        found = space.special(candidate)
        inputs = space.as_set("", found)
        if not self._ends(inputs) or not self._is_usable(inputs) or converts_undefined(self.model, inputs):
            return candidate
        return found

    def _ends(self, inputs: InputSet) -> bool:
        """Whether eager gives something: its loops may never end."""
        return traced(self.model, inputs, self.copies, self.guards, most_trips=_MOST_TRIPS_BY_CHANCE) is not None

    def _decides_exactly(self, candidate: Candidate) -> bool:
        return self.space is not None and decides_exactly(self.model, self.space.as_set("", candidate))

    def _sharpen(self, space: Space, start: Iterable[InputSet]) -> None:
        """Add inputs that are near to where conditions flip."""
        for candidate in (space.of_set(each) for each in start):
            if candidate is not None and self._has_time():
                self._try(space, candidate)
        self.edges.halve(lambda candidate: self._has_time() and self._try(space, candidate))
        for side in self.edges.far():
            self._approach(space, side)
        for (copy, way, other), candidate in self.edges.near():
            inputs = space.as_set("", candidate)
            if self._is_usable(inputs):
                name = f"{Path(copy[0]).stem}_{copy[1]}_{way}_near_{other}".replace(" ", "_")
                self._add(name, inputs)
                self.found.near += 1

    def _approach(self, space: Space, side: Side) -> None:
        """Come near to where a condition flips, from one candidate: in a loop it may go both ways, trip by trip."""
        target = side[0], side[2]
        for _ in range(_APPROACHES):
            margin, candidate = self.edges.nearest[side]
            if side not in self.edges.far() or not self._has_time():
                return
            changed = space.changed(candidate, margin or None)
            now = self._try(space, changed, target)
            if now is None or now[0] > 0 or now[1] >= margin or not self._has_time():
                continue
            root = margin / (margin - now[1])  # where the secant meets zero
            for share in (1 - 1e-3, 1 + 1e-3):
                moved = space.moved(candidate, changed, root * share)
                if moved is not None:
                    self._try(space, moved)

    def _search(self, space: Space, start: Iterable[InputSet]) -> None:
        given = (space.of_set(each) for each in start)
        for candidate in itertools.chain((each for each in given if each is not None), space.boundary()):
            if not self._goes_on():
                return
            self._try(space, candidate)
        for turn in itertools.count():
            if not self._goes_on():
                return
            reached = [target for target in self.targets if target in self.best]
            if not reached:
                self._try(space, space.fresh())
                continue
            for target in reached:
                if self._goes_on() and target in self.targets:
                    starts = sorted(self.best[target].values(), key=lambda each: each[0])
                    self._climb(space, target, *starts[turn % min(len(starts), _STARTS)])

    def _goes_on(self) -> bool:
        return bool(self.targets) and self._has_time()

    def _has_time(self) -> bool:
        if self.found.evaluations >= self.limit:
            return False
        if self.deadline is not None and time.monotonic() > self.deadline:
            self.found.out_of_time = True
            return False
        return True

    def _climb(self, space: Space, target: Target, distance: Distance, candidate: Candidate) -> None:
        """Change a candidate that is near to a target, for as long as that is worth while."""
        for number in range(1, _PATIENCE + 1):
            if number % _FRESH == 0 and self._goes_on():  # what is nearest may lead nowhere
                self._try(space, space.fresh())
            if not self._goes_on() or target not in self.targets:
                return
            # a margin of a tie is smaller than any step
            changed = space.changed(candidate, distance[1] if 1e-30 < distance[1] < 1e30 else None)  # noqa: PLR2004
            now = self._try(space, changed, target)
            if now is None or target not in self.targets or now >= distance:
                continue
            # The same again, as far as it leads: to where the secant meets zero, a little beyond, and by doubling.
            same_level = distance[0] == now[0] and distance[1] > now[1]
            root = distance[1] / (distance[1] - now[1]) if same_level else 2.0
            start, distance, nearest = candidate, now, changed
            for factor in (root, root * 1.01, root * 0.99, 2.0, 4.0, 16.0, 256.0):
                moved = space.moved(start, changed, factor)
                if moved is None or not self._goes_on() or target not in self.targets:
                    break
                there = self._try(space, moved, target)
                if there is not None and there < distance:
                    distance, nearest = there, moved
            candidate = nearest

    def _try(self, space: Space, candidate: Candidate, target: Target | None = None) -> Distance | None:
        """Run on a candidate, keep it if it takes a path that is missing; its distance to ``target``."""
        trace = self._traced(space, candidate)
        return None if trace is None or target is None else trace.distance.get(target, _FAR)

    def _traced(self, space: Space, candidate: Candidate) -> Trace | None:
        inputs = space.as_set("", candidate)
        trace = traced(self.model, inputs, self.copies, self.guards)
        self._keep(inputs, trace, candidate)
        return trace

    def _is_usable(self, inputs: InputSet) -> bool:
        """Whether there is something to compare: values, or that all of them raise."""
        reference = eager_reference(self.model, inputs)
        return not reference.problem or is_guarded(reference.raised, self.guards)

    def _keep(self, inputs: InputSet, trace: Trace | None, candidate: Candidate | None) -> None:
        self.found.evaluations += 1
        if trace is None:
            return
        new = [target for target in self.targets if target in trace.taken]
        if new and self._is_usable(inputs):
            names = [way_name(*target) for target in new]
            self._add(names[0], inputs)
            self.found.reached += names
            for target in new:
                del self.targets[target]
        if candidate is None:
            return
        self.edges.note(trace.taken, trace.distance, candidate)
        self.decisions.note(trace.pairs, candidate)
        ways = frozenset(trace.taken)
        for target in self.targets:
            distance = trace.distance.get(target, _FAR)
            known = self.best.setdefault(target, {}) if distance < _FAR else {}
            if distance < known.get(ways, (_FAR, candidate))[0]:
                known[ways] = distance, candidate

    def _add(self, name: str, inputs: InputSet) -> None:
        same = sum(each.name.startswith(name) for each in self.found.sets)
        self.found.sets.append(InputSet(f"{name}_{same}" if same else name, inputs.args, inputs.kwargs))
