"""What is known of a number that branches have given: laws, without an export."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from dy2st.staging.known_constants import MOST_CONSTANTS, KnownConstants
from dy2st.values.number import Number

# A tree of branches: an int in each arm at the end.
trees = st.recursive(st.integers(-9, 9), lambda inner: st.tuples(inner, inner), max_leaves=9)


def values(tree):
    return {tree} if isinstance(tree, int) else values(tree[0]) | values(tree[1])


def joined(known, tree):
    """The number that the branches give; one with a single constant is that."""
    if isinstance(tree, int):
        return tree
    sides = [joined(known, each) for each in tree]
    made = Number(torch.zeros((), dtype=torch.int64), int)
    known.note(made.tensor, *sides)
    return made


@given(trees)
def test_a_number_is_one_of_the_constants_at_the_ends_of_its_branches(tree):
    known = KnownConstants()
    found = known.constants_of(joined(known, tree))
    assert found in (frozenset(), frozenset(values(tree)))
    assert bool(found) == (len(values(tree)) <= MOST_CONSTANTS)


def test_nothing_is_known_of_other_numbers():
    known = KnownConstants()
    other = Number(torch.zeros((), dtype=torch.int64), int)
    made = Number(torch.zeros((), dtype=torch.int64), int)
    known.note(made.tensor, 3, other)
    assert known.constants_of(other) == known.constants_of(made) == frozenset()
    assert known.constants_of(True) == known.constants_of(2.0) == known.constants_of(None) == frozenset()
    assert known.by_case((made, 3)) is None
    assert known.by_case((3, "text")) is None
