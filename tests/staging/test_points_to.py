"""Laws of the analysis of what may share memory in a loop: against loops run on memory. Nothing is exported."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from dy2st.staging.memory.points_to import Binding, PointsTo

VARIABLES = ("a", "b", "c")
OUTSIDE = (1, 2, 3)
MADE = (10, 11)
befores = st.fixed_dictionaries({name: st.sampled_from(OUTSIDE) for name in VARIABLES})
# What each variable is at the end of an iteration, on one path through the body.
paths = st.fixed_dictionaries({name: st.sampled_from((*VARIABLES, *OUTSIDE, *MADE)) for name in VARIABLES})
bodies = st.lists(paths, min_size=1, max_size=3)


def joined(body, heads):
    """The pairs that the results of a branch with these arms may be in."""
    pairs = set(heads)
    for path in body:
        for name in VARIABLES:
            cells = {path[name], *(other for one, other in heads if one == path[name])}
            pairs |= {(("result", name), cell) for cell in cells}
        for name, other in itertools.permutations(VARIABLES, 2):
            if path[name] == path[other] or (path[name], path[other]) in heads:
                pairs.add((("result", name), ("result", other)))
    return pairs | {(other, one) for one, other in pairs}


def settled(before, body, leaving=()):
    """The analysis of a loop, as its runs find it: each knows of its heads what the run before it has found.

    The paths ``leaving`` leave the loop.
    """
    heads = set()
    branches = len(body) + len(leaving) > 1
    while True:
        ends = {name: ("result", name) if branches else (*body, *leaving)[0][name] for name in VARIABLES}
        pairs = joined((*body, *leaving) if branches else (), heads)
        staying = joined(body if branches else (), heads)
        bindings = {name: Binding(before[name], ends[name]) for name in VARIABLES}
        found = PointsTo(
            bindings,
            lambda cell: [other for one, other in pairs if one == cell],  # noqa: B023
            OUTSIDE,
            lambda cell: [other for one, other in staying if one == cell],  # noqa: B023
        )
        if found.head <= heads:
            return found
        heads |= found.head


def run(before, body, chance, trips, leaving=()):
    """What each variable is at the head of each iteration, and behind the last."""
    found = [before]
    for trip in range(trips):
        last = trip == trips - 1 and bool(leaving)
        path, heads = chance.choice(leaving if last else body), found[-1]
        found.append(
            {n: heads[end] if end in VARIABLES else end if end in OUTSIDE else (trip, end) for n, end in path.items()}
        )
    return found


def shared(heads):
    """The pairs that share memory."""
    cells = [*heads.items(), *((cell, cell) for cell in OUTSIDE)]
    return {(one, other) for (one, x), (other, y) in itertools.permutations(cells, 2) if x == y}


@given(befores, bodies, st.integers(0, 1000), st.integers(1, 6))
def test_what_shares_memory_in_a_run_is_a_pair(before, body, seed, trips):
    points_to = settled(before, body)
    found = run(before, body, random.Random(seed), trips)
    assert shared(found[0]) <= points_to.before
    for heads in found[:-1]:
        assert shared(heads) <= points_to.head
    for after in found[1:]:
        assert shared(after) <= points_to.end


@given(befores, bodies, bodies, st.integers(0, 1000), st.integers(1, 6))
def test_what_a_path_out_of_the_loop_shares_is_a_pair_at_its_end(before, body, leaving, seed, trips):
    points_to = settled(before, body, leaving)
    found = run(before, body, random.Random(seed), trips, leaving)
    for heads in found[:-1]:
        assert shared(heads) <= points_to.head
    for after in found[1:]:
        assert shared(after) <= points_to.end


@given(befores, bodies, bodies)
def test_a_path_out_of_the_loop_says_nothing_of_its_heads(before, body, leaving):
    # A body of one path and one of several are bound in two ways.
    assert settled(before, [*body, *body], leaving).head == settled(before, [*body, *body]).head


@given(befores, paths)
def test_a_body_of_one_path_has_the_pairs_of_its_runs_and_no_others(before, path):
    trips = run(before, [path], random.Random(0), 12)
    assert set().union(*map(shared, trips)) == settled(before, [path]).head


@given(befores, bodies)
def test_pairs_have_no_order_and_those_at_an_end_are_those_at_a_head(before, body):
    points_to = settled(before, body)
    for pairs in (points_to.before, points_to.end, points_to.head):
        assert {(b, a) for a, b in pairs} == pairs
        assert all(a != b for a, b in pairs)
    assert points_to.before | points_to.end == points_to.head
    assert settled(before, body, body).head <= points_to.head


@given(befores, bodies, paths)
def test_more_paths_never_give_fewer_pairs(before, body, more):
    assert settled(before, body).head <= settled(before, [*body, more]).head


def test_two_buffers_that_change_places_are_never_one():
    for body in ([{"a": "b", "b": "a", "c": "c"}], [{"a": "b", "b": "a", "c": 10}, {"a": "a", "b": "b", "c": "c"}]):
        found = settled({"a": 1, "b": 2, "c": 3}, body)
        assert ("a", "b") not in found.head
        assert {(v, cell) for v in "ab" for cell in (1, 2)} <= found.head


def test_what_one_iteration_makes_is_not_what_the_next_one_makes():
    found = settled({"a": 1, "b": 2, "c": 3}, [{"a": 10, "b": "a", "c": 11}])
    assert ("a", "b") not in found.head
    assert ("b", 1) in found.head
    assert ("a", 1) not in found.end
