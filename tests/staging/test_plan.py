"""Laws of the search over the ways to stage a model, on models that say what they need. Nothing is exported."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dy2st.errors import StagingError, UsageError
from dy2st.plan import MOST_PEELINGS, MOST_REFUSALS, Alternative, Plan, Revision

alternatives = st.sets(st.sampled_from(Alternative))
SITES = ("a", "b", "c")
sites = st.sets(st.sampled_from(SITES))


@dataclasses.dataclass
class Model:
    """What a model meets on its way, and what it needs: ``plain`` is what an attempt without that is refused for."""

    met: set[Alternative] = dataclasses.field(default_factory=set)
    needed: set[Alternative] = dataclasses.field(default_factory=set)
    # Loops that may turn out to have to be peeled, those of them that find it out by themselves, those that need it.
    suspects: set[str] = dataclasses.field(default_factory=set)
    telling: set[str] = dataclasses.field(default_factory=set)
    peeled: set[str] = dataclasses.field(default_factory=set)
    sizes: int = 0
    attempts: int = 0
    fixed: int = 0

    def attempt(self, plan: Plan) -> frozenset[Alternative]:
        self.attempts += 1
        taken = {each for each in Alternative if each in self.met and plan.takes(each)}
        for site in sorted(self.suspects):
            plan.suspects.add(site)
            if site in self.telling and plan.may_repeel(site) and not plan.peels(site):
                plan.repeel(site)
        if self.fixed < self.sizes:
            raise Revision(self.fix)
        if taken != self.needed or any(plan.peels(site) is not (site in self.peeled) for site in self.suspects):
            peeled = any(map(plan.peels, SITES))
            raise StagingError("another way" if taken or peeled else f"plain, attempt {self.attempts}", hint="")
        return frozenset(taken)

    def fix(self) -> None:
        self.fixed += 1


@given(alternatives, sites)
def test_a_model_that_needs_nothing_is_staged_once(met, suspects):
    plan, model = Plan(), Model(met=met, suspects=suspects)
    assert plan.carry_out(lambda: model.attempt(plan)) == set()
    assert model.attempts == 1


@given(alternatives, st.data())
def test_a_combination_of_alternatives_is_found_and_the_smaller_ones_are_tried_first(met, data):
    needed = data.draw(st.sets(st.sampled_from(sorted(met, key=str)))) if met else set()
    plan, model = Plan(), Model(met=met, needed=needed)
    assert plan.carry_out(lambda: model.attempt(plan)) == needed
    assert plan.taken == needed
    assert model.attempts <= 2 ** len(met)


@given(sites, st.data())
def test_loops_are_peeled_where_they_say_so_or_all_together(suspects, data):
    telling = data.draw(st.sets(st.sampled_from(sorted(suspects)))) if suspects else set()
    peeled = telling or data.draw(st.sampled_from([suspects, set()]))
    plan, model = Plan(), Model(suspects=suspects, telling=telling, peeled=peeled)
    plan.carry_out(lambda: model.attempt(plan))
    assert {site for site in SITES if plan.peels(site)} == peeled


@given(alternatives, sites, sites, st.integers(0, 5))
def test_the_refusal_of_the_plain_way_is_reported_and_the_search_ends(met, suspects, telling, sizes):
    plan = Plan()
    model = Model(met=met, needed={*Alternative, None}, suspects=suspects, telling=telling & suspects, sizes=sizes)
    with pytest.raises(StagingError) as refused:
        plan.carry_out(lambda: model.attempt(plan))
    assert refused.value.what.startswith("plain")
    assert model.telling or refused.value.what == f"plain, attempt {1 + sizes}"
    assert model.attempts <= MOST_REFUSALS + sizes + MOST_PEELINGS


@given(alternatives, st.integers(0, 5))
def test_sizes_that_are_fixed_keep_what_is_tried(met, sizes):
    plan, model = Plan(), Model(met=met, needed=met, sizes=sizes)
    assert plan.carry_out(lambda: model.attempt(plan)) == met
    assert model.fixed == sizes


def test_a_loop_that_is_worse_off_peeled_is_tried_as_it_was():
    plan = Plan()
    seen = []

    def attempt():
        seen.append(plan.peels("a"))
        if not seen[-1] and plan.may_repeel("a"):
            plan.repeel("a")
        if seen[-1]:
            raise StagingError("peeled", hint="")
        return "plain"

    assert plan.carry_out(attempt) == "plain"
    assert seen == [False, True, False]


def test_a_wrong_use_is_no_matter_of_how():
    plan, attempts = Plan(), []

    def attempt():
        attempts.append(plan.takes(Alternative.WHOLE_PIECES))
        raise UsageError("no such file")

    with pytest.raises(UsageError):
        plan.carry_out(attempt)
    assert attempts == [False]
