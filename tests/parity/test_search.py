"""The search for inputs: how far a condition was from its other answer, and what is found with that."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.export import Dim

import dy2st
from dy2st.errors import UsageError
from dy2st.input_spec import parse_input_spec
from dy2st.parity.call_form import CallForm
from dy2st.parity.checking import eager_references
from dy2st.parity.dynamic import inferred_dynamic_shapes
from dy2st.parity.inputs import InputSet, input_sets
from dy2st.parity.margins import Margins
from dy2st.parity.paths import missing_ways, path_coverage, staged_copies, ways_taken
from dy2st.parity.search import Found, Search
from dy2st.parity.space import Space, space_of_examples
from dy2st.parity.stages import eager_reference
from dy2st.parity.strategies import drawn_sets
from dy2st.staging.routes import Copies, Copy


def margin(question: Any, *given: Any) -> float:
    margins = Margins()
    with margins:
        bool(question(*given))
    return margins.taken()[1]


@pytest.mark.parametrize(
    ("question", "distance"),
    [
        (lambda x: x.sum() > 10, 4),
        (lambda x: x.sum() <= 10, 4),
        (lambda x: x.sum() == 10, 4),
        (lambda x: x.sum() != 6, 1),
        (lambda x: (x > 2.5).any(), 0.5),
        (lambda x: (x > 0.25).all(), 0.75),
        (lambda x: ~(x > 2.5).any(), 0.5),
        (lambda x: (x[0] > 3) & (x[1] > 3), 2),
        (lambda x: (x[0] > 3) | (x[1] > 3), 1),
        (lambda x: torch.logical_not(torch.lt(x, 5).all()), 2),
        (lambda x: (x > 2.75)[2], 0.25),
        (lambda x: x.sum().item() > 5, 1),
        (lambda x: 2 * x.sum().item() - 1 > 5, 6),
        (lambda x: x.sum() - 2, 4),
        (lambda x: torch.isnan(x).any(), 1),
        (lambda x: 3, 1e300),
    ],
)
def test_margins(question: Any, distance: float) -> None:
    assert margin(question, torch.tensor([1.0, 2.0, 3.0])) == pytest.approx(distance)


def test_what_gets_further_is_nearer() -> None:
    def levels(x: Tensor) -> tuple[int, float]:
        margins = Margins()
        with margins:
            bool(x.sum() > 3 and x.max() > 9)
        return margins.taken()

    assert levels(torch.tensor([4.0])) == (-2, 5) < levels(torch.tensor([2.0])) == (-1, 1)


def deep(x: Tensor) -> Tensor:
    if x.sum() > 1234.5:
        if (x[0] * 3 - 7).abs() < 1e-3:
            return x * 2
        return x + 1
    while x.abs().max() > 1:
        x = x / 2
    return x


def rows(x: Tensor, k: Tensor) -> Tensor:
    found = 0
    for row in x:
        if row.sum() == 3:
            found = found + 1
    if found > 2 and k.sum() == 12:
        return x.sum() + 1
    return x.sum()


def leaves(x: Tensor, limit: Tensor) -> Tensor:
    total = torch.zeros(3)
    for row in x:
        total = total + row
        if total.sum() > limit:
            break
    else:
        total = total - 1
    return total


# Of a call whose arguments are all named by specs.
KEYWORDS = CallForm.of(None, InputSet("0"))


def at_the_bound(x: Tensor) -> Tensor:
    while x.shape[0] < 13:
        x = torch.cat([x, x[:1] * 2])
    return x


def search(model: Any, *specs: str, seed: int = 0, runs: int = 1000) -> tuple[Search, Found]:
    parsed = {spec.name or "": spec for spec in map(parse_input_spec, specs)}
    start = Space(KEYWORDS, parsed, 99)
    sets = [InputSet(str(i), (), each) for i, each in zip(range(2), start.boundary(), strict=False)]
    report = dy2st.check(model, sets)
    assert report.ok, str(report)
    found = Search(model, Space(CallForm.of(model, sets[0]), parsed, seed), *missing(model, sets), evaluations=runs)
    return found, found.run(sets)


def missing(model: Any, sets: list[InputSet]) -> tuple[Copies, list[tuple[Copy, str]]]:
    """The branches and loops of a model's program, and what some inputs don't take of them."""
    shapes = inferred_dynamic_shapes(model, sets)
    staged = staged_copies(dy2st.export(model, sets[0].args, sets[0].kwargs, dynamic_shapes=shapes))
    copies = Copies(staged)
    taken, problem = ways_taken(model, [eager_reference(model, each) for each in sets], copies)
    assert not problem
    return copies, missing_ways(staged, taken)


@pytest.mark.slow_for("0-rows-", "0-deep-")
@pytest.mark.parametrize(
    ("model", "specs"),
    [
        (deep, ["x=f32[3]"]),
        (rows, ["x=f32[n,3]", "k=i64[4]:{1,2,5}"]),
        (leaves, ["x=f32[n,3]", "limit=f32[]"]),
        (at_the_bound, ["x=f32[n:1..13]"]),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_everything_is_reached(model: Any, specs: list[str], seed: int) -> None:
    _, found = search(model, *specs, seed=seed)
    assert found.missing == 0, found.summary()
    assert not found.out_of_time


@pytest.mark.slow
def test_equal_seeds_find_equal_inputs() -> None:
    def found(seed: int) -> list[Tensor]:
        return [each.kwargs["x"] for each in search(deep, "x=f32[3]", seed=seed)[1].sets]

    first, again, other = found(5), found(5), found(6)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(first, other, strict=False))


def test_what_can_not_be_reached_is_counted() -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 40 else x

    found, result = search(model, "x=f32[3]:-1..1", runs=60)
    assert result.missing == 1
    assert [way for _, way in found.targets] == ["then"]
    assert "1 not reached" in result.summary()
    assert result.evaluations == 60 + 30  # half as many more, near to where conditions flip


def test_candidates_keep_to_their_spec() -> None:
    specs = [parse_input_spec(text) for text in ("x=f32[n:2..5,3]:-1..2", "k=i64[n:2..5]:{1,4}", "m=bool[2]")]
    space = Space(KEYWORDS, {spec.name or "": spec for spec in specs})
    candidates = list(space.boundary())
    for each in list(candidates):
        candidates += [space.changed(each) for _ in range(5)]
    for each in candidates:
        size = each["x"].shape[0]
        assert 2 <= size <= 5
        assert each["x"].shape == (size, 3)
        assert each["k"].shape == (size,)
        assert set(each["k"].tolist()) <= {1, 4}
        assert -1 <= float(each["x"].min()) <= float(each["x"].max()) <= 2
        assert (each["x"].dtype, each["k"].dtype, each["m"].dtype) == (torch.float32, torch.int64, torch.bool)


def test_a_space_of_examples() -> None:
    sets = input_sets([(torch.ones(2, 3), torch.tensor([1, 5])), (torch.ones(4, 3), torch.tensor([1, 5, 2, 2]))])
    space = space_of_examples(lambda x, k: x, sets, 0)
    (x, k) = space.specs.values()
    assert [d.name for d in x.dimensions] == ["d0", None]
    assert [d.name for d in k.dimensions] == ["d0"]
    assert (k.low, k.high) == (1, 5)
    with pytest.raises(UsageError, match="there is none among the arguments"):
        space_of_examples(lambda n: n, input_sets([(3,)]), 0)


def test_an_input_that_eager_rejects_is_none() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 2:
            return x.reshape(3)
        return x

    sets = input_sets([(torch.zeros(3),)])
    found = Search(model, Space(KEYWORDS, {"x": parse_input_spec("x=f32[n]")}), *missing(model, sets)).run()
    for_paths = found.sets[: len(found.sets) - found.near]
    assert [each.kwargs["x"].shape for each in for_paths] == [(3,)]
    assert not any(eager_reference(model, each).problem for each in found.sets)


@pytest.mark.parametrize("sizes", [(3, 2), (2, 5)])
def test_conditions_in_loops_flip_near_some_input(sizes: tuple[int, int]) -> None:
    """Both ways are taken by one input, or by inputs of other sizes."""

    def model(x: Tensor) -> Tensor:
        total = torch.zeros(2)
        for row in x:
            if row.sum() > 1:
                total = total + row
            if total.max() > 3:
                total = total * 0.5
        return total

    one, other = sizes
    sets = input_sets([(torch.tensor([[1.0, 2.0], [-1.0, 0.5], [2.0, 2.0]])[:one],), (torch.ones(other, 2),)])
    space = space_of_examples(model, sets, 0)
    found = Search(model, space, *missing(model, sets)).run(sets)
    names = {each.name.split("_", 3)[-1] for each in found.sets if "_near_" in each.name}
    lines = {each.name.split("_")[2] for each in found.sets if "_near_" in each.name}
    assert {"then_near_else", "else_near_then"} <= {name.removesuffix("_0") for name in names}
    assert len(lines) == 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.bool])
def test_what_is_given_stays_as_it_is(dtype: torch.dtype) -> None:
    given = [(torch.tensor([1, 2, 3]).to(dtype), torch.tensor(1).to(dtype))]
    before = [tuple(each.clone() for each in args) for args in given]

    def model(x: Tensor, k: Tensor) -> Tensor:
        return x * k

    sets = input_sets(given)
    space = space_of_examples(model, sets, 0)
    candidate = space.of_set(sets[0])
    assert candidate is not None
    for step in (None, 0.5) * 50:
        space.moved(candidate, space.changed(candidate, step), 2.0)
    torch.testing.assert_close(given, before, rtol=0, atol=0)


def test_strategies() -> None:
    strategies = {"x": st.floats(0, 9, width=32).map(lambda value: torch.full((2,), value)), "n": st.just(2)}
    sets = drawn_sets(strategies, seed=1, count=7)
    again = drawn_sets(strategies, seed=1, count=7)
    assert [each.kwargs["n"] for each in sets] == [2] * len(sets)
    assert all(torch.equal(a.kwargs["x"], b.kwargs["x"]) for a, b in zip(sets, again, strict=True))
    with pytest.raises(UsageError, match="no dict of hypothesis strategies"):
        drawn_sets({"x": 3}, seed=0, count=1)


def test_observed_lists_stay() -> None:
    def score(x: Tensor) -> Tensor:
        return -x if x > 2 else x

    def model(x: Tensor) -> tuple[Tensor, int]:
        rows = [(row, i) for i, row in enumerate(x)]
        rows.sort(key=lambda pair: score(pair[0]), reverse=True)
        return rows[0]

    report = dy2st.check(model, [(torch.tensor([1.0, 3.0]),)])
    assert report.ok, str(report)


def test_observed_numbers_stay_numbers() -> None:
    def model(x: Tensor) -> Tensor:
        n = int(x.sum().item())
        return x * float(x.max()) if n > 2 else x

    references = eager_references(model, [(torch.ones(3),)])
    paths, problem = path_coverage(model, references, dy2st.export(model, (torch.ones(3),)))
    assert (problem, [site.taken for site in paths]) == ("", [("then",)])


def _two_arms(x: Tensor) -> Tensor:
    if x.sum() > 40:
        return x * 2
    return x + 1


def test_a_check_may_search() -> None:
    given = [(torch.ones(3),), (torch.ones(2),)]
    assert not dy2st.check(_two_arms, given).covered
    report = dy2st.check(_two_arms, given, search=1, seed=3)
    assert report.ok
    assert report.covered
    assert report.searched.startswith("searched with ")
    with pytest.raises(UsageError, match="search=0 is no time"):
        dy2st.check(_two_arms, given, search=0)
    with pytest.raises(UsageError, match="not for a program or file that is given"):
        dy2st.check(_two_arms, given, onnx_file="any.onnx", search=1)


def _rows(x: Tensor, y: Tensor) -> Tensor:
    total = (x + y).sum()
    for row in x:
        total = total + row.max()
    return total


def _largest(x: Tensor) -> Tensor:
    return x.max()


def _searched(model: Any, sizes: list[tuple[int, int]], *, dynamic_shapes: Any = None) -> tuple[set[int], str]:
    names = [torch.ones(size) for size in sizes]
    given = [(each, each) if model is _rows else (each,) for each in names]
    report = dy2st.check(model, given, search=1, dynamic_shapes=dynamic_shapes)
    assert report.ok, str(report)
    return {int(each.description.split("[")[1].split(",")[0]) for each in report.inputs}, report.searched


def test_a_size_that_may_be_none_is_tried() -> None:
    sizes, line = _searched(_rows, [(4, 3), (3, 3)])
    assert {0, 1, 3, 4} <= sizes, line
    n = Dim("n")
    sizes, line = _searched(_rows, [(4, 3)], dynamic_shapes=({0: n}, {0: n}))
    assert {0, 1, 4} <= sizes, line


def test_a_size_of_none_is_tried_though_no_path_is_missing() -> None:
    report = dy2st.check(lambda x: x + 1, [(torch.ones(4, 3),), (torch.ones(2, 3),)], search=1)
    assert [(each.name, each.outcome) for each in report.inputs][2:] == [("empty_x", "equal")]
    assert "; 1 more input with a size of 0;" in report.searched


def test_what_eager_rejects_without_elements_is_said_and_no_failure() -> None:
    sizes, line = _searched(_largest, [(4, 3), (3, 3)])
    assert 0 not in sizes
    assert "; not compared: x: f32[0, 3]: eager itself raises RuntimeError" in line


def test_sizes_keep_to_the_declared_range() -> None:
    sizes, line = _searched(_rows, [(4, 3)], dynamic_shapes=({0: (n := Dim("n", min=1, max=5))}, {0: n}))
    assert {1, 4} <= sizes <= set(range(1, 6)), line
    space = Space(KEYWORDS, {"x": parse_input_spec("x=f32[n:100..300]")})
    assert space.dimensions() == {"n": (100, 200)}
    assert {each["x"].shape[0] for each in space.boundary()} <= set(range(100, 201))


def test_sizes_that_the_program_ties_together() -> None:
    n = Dim("n", max=50)
    shapes = ({0: n}, {0: 2 * n})
    sets = input_sets([(torch.ones(4), torch.ones(8))])
    program = dy2st.export(_double, sets[0].args, dynamic_shapes=shapes)
    assert space_of_examples(_double, sets, 0, program).dimensions() == {}
    assert dy2st.check(_double, [sets[0].args], dynamic_shapes=shapes, search=1).ok


def _double(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, x]) + y
