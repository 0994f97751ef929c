"""Laws of the lattice of values: of ``join``, and of what a loop's fixpoint makes of it. Nothing is exported."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dy2st.staging.lattice.join import TAGGED_UNION, Incompatible, Invariant, Phi, Structured, UnequalLengths, join
from dy2st.staging.loops.widening import refined
from dy2st.values.container_structure import Keys
from dy2st.values.undefined import UNSET

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool)
numbers = st.one_of(st.integers(-3, 3), st.floats(-2, 2, width=16), st.booleans())
tensors = st.builds(
    lambda dtype, rank: torch.zeros([2] * rank, dtype=dtype), st.sampled_from(DTYPES), st.integers(0, 2)
)
plain = st.one_of(numbers, tensors, st.none(), st.sampled_from(["a", "b"]))


def containers(inner: Any) -> Any:
    return st.one_of(
        st.tuples(inner, inner),
        st.lists(inner, min_size=2, max_size=2),
        st.fixed_dictionaries({"x": inner, "y": inner}),
    )


values = st.recursive(plain, containers, max_leaves=4)


def shown(signature: Any) -> str:
    """A signature as text; the keys of a dict have no other."""
    if isinstance(signature, tuple):
        return f"({', '.join(map(shown, signature))})"
    return repr(signature.order) if isinstance(signature, Keys) else repr(signature)


def form(joined: Any) -> Any:
    """What a join says, without the two values: cases of several kinds in any order."""
    if isinstance(joined, Invariant):
        return ("invariant",)
    if isinstance(joined, Phi):
        return ("phi", joined.dtype, joined.kind)
    if isinstance(joined, (Incompatible, UnequalLengths)):
        return (type(joined).__name__,)
    if joined.signature[0] == TAGGED_UNION:
        cases = zip(joined.signature[1], joined.children[1:], strict=True)
        return ("one of", frozenset((shown(kind), form(child)) for kind, child in cases))
    return ("structured", shown(joined.signature), *map(form, joined.children))


def of_several_kinds(joined: Any) -> bool:
    """Whether a join, or a part of it, is one of several cases. Of these a later run may need fewer."""
    if not isinstance(joined, Structured):
        return False
    return joined.signature[0] == TAGGED_UNION or any(map(of_several_kinds, joined.children))


def height(joined: Any) -> int:
    """How far up a join of one kind of value is: it can only go up while a loop's state is looked for."""
    if isinstance(joined, Invariant):
        return 0
    if isinstance(joined, Phi):
        return 1
    return sum(map(height, joined.children)) if isinstance(joined, Structured) else 1_000


@given(values)
def test_a_value_joined_with_itself_is_itself(value):
    joined = join(value, value)
    assert isinstance(joined, Invariant)
    assert joined.value is value


@given(values, values)
def test_the_order_of_the_paths_says_nothing(a, b):
    assert form(join(a, b)) == form(join(b, a))


@given(values, values)
def test_a_join_is_above_both_of_its_sides(a, b):
    both = join(a, b)
    for side in (a, b):
        again = refined(both, side, side)
        assert height(again) >= height(both) or of_several_kinds(both)


@given(values, values)
def test_what_one_path_does_not_need_is_of_the_other_ones_kind(a, b):
    joined = join(a, b, need_b=False)
    assert "Incompatible" not in repr(form(joined))
    assert form(joined) == form(join(a, UNSET, need_b=False))


@given(values)
def test_what_has_no_value_on_one_path_is_one_of_two_or_an_error_where_it_is_read(value):
    assert form(join(value, UNSET))[0] in ("one of", "Incompatible", "invariant")


@given(values, st.lists(values, min_size=1, max_size=6))
@settings(max_examples=300)
def test_a_loops_state_goes_up_and_comes_to_rest(before, ends):
    """Whatever the runs of a body end with: each entry is above the last one, until nothing changes."""
    entry = join(before, ends[0])
    for end in ends[1:]:
        above = refined(entry, before, end)
        assert height(above) >= height(entry) or of_several_kinds(entry)
        entry = above
    last = refined(entry, before, ends[-1])
    assert form(refined(last, before, ends[-1])) == form(last)
