"""Sizes for which a fact holds stand for the example's, and all that is known besides goes on holding."""

from __future__ import annotations

import operator

import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from dy2st.tracing.example_sizes import agreed
from dy2st.tracing.size_facts import SizeFacts, assume, holding

RELATIONS = (operator.lt, operator.le, operator.gt, operator.ge, sympy.Eq, sympy.Ne)


def sizes(*example):
    """An environment, and the symbols of the sizes of an example."""
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * len(example))
    tensor = mode.from_tensor(torch.empty(example), symbolic_context=context)
    return env, [size.node.expr for size in tensor.shape]


def test_others_stand_for_the_example():
    env, (n,) = sizes(2)
    before = dict(env.backed_var_to_val)
    with holding(env, [n > 3]):
        assert env.backed_var_to_val[n] > 3
        assert env._maybe_evaluate_static(n >= 3) == sympy.true
        with holding(env, [sympy.Eq(n, 7)]):
            assert env.backed_var_to_val[n] == 7
        assert env._maybe_evaluate_static(sympy.Eq(n, 7)) is None
    assert dict(env.backed_var_to_val) == before
    assert env._maybe_evaluate_static(n >= 3) is None


def test_the_example_stays_where_it_agrees():
    env, (n, m) = sizes(5, 2)
    with holding(env, [n > 3, n > m]):
        assert (env.backed_var_to_val[n], env.backed_var_to_val[m]) == (5, 2)


def test_what_no_size_can_be_is_left_out():
    env, (n,) = sizes(5)
    assume(env, n <= 8)
    before = SizeFacts.of(env)
    assert not agreed(env, n > 8)
    with holding(env, [n > 8]):
        assert before.same_as(env)


def test_a_fact_may_hold_twice_in_turn():
    """torch keeps what it has been told once in a cache that knows of no going back."""
    env, (n,) = sizes(2)
    for _ in range(2):
        with holding(env, [n >= 6]):
            assert env._maybe_evaluate_static(n >= 4) == sympy.true
        assert env._maybe_evaluate_static(n >= 4) is None


@given(
    example=st.tuples(st.integers(2, 7), st.integers(2, 7)),
    facts=st.lists(
        st.tuples(st.sampled_from(RELATIONS), st.booleans(), st.booleans(), st.integers(-2, 9)), min_size=1, max_size=4
    ),
)
def test_all_that_is_known_goes_on_holding(example, facts):
    env, (n, m) = sizes(*example)
    before = dict(env.backed_var_to_val)
    known = SizeFacts.of(env)
    told = []
    for relation, of_both, doubled, number in facts:
        left = 2 * n if doubled else n
        fact = relation(left, m + number) if of_both else relation(left, number)
        if fact in (sympy.true, sympy.false) or not agreed(env, fact):
            continue
        assume(env, fact)
        told.append(fact)
        assert all(each.xreplace(env.backed_var_to_val) == sympy.true for each in told)
        assert all(size in env.var_to_range[symbol] for symbol, size in env.backed_var_to_val.items())
    known.restore(env)
    assert dict(env.backed_var_to_val) == before


def test_torch_keeps_examples_where_they_are_looked_for():
    """If this fails, look at ``tracing/example_sizes.py`` and ``sizes/guard_hooks.py``."""
    env, (n,) = sizes(2)
    assert env.backed_var_to_val == {n: 2}
    assert callable(symbolic_shapes._sym_node_hint_disproves)
    assert hasattr(ShapeEnv._maybe_guard_rel, "cache_clear")
