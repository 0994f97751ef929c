"""What counts as equal: counts, dtypes, shapes, NaN and infinity in place, values within the table's tolerance."""

from __future__ import annotations

import math

import pytest
import torch

import dy2st
from dy2st.errors import UsageError
from dy2st.parity.compare import compare
from dy2st.parity.outputs import flat_outputs, placed
from dy2st.parity.tolerances import TOLERANCES, bound_for, short_name, tolerance_for
from dy2st.report.model import Tolerance

nan, inf = float("nan"), float("inf")


def result(expected, actual, **bounds):
    return compare("program", flat_outputs(expected), flat_outputs(actual), **bounds)


def kinds(expected, actual, **bounds):
    return [difference.kind for difference in result(expected, actual, **bounds).differences]


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (torch.ones(3), torch.ones(3)),
        (torch.tensor([nan, inf, -inf, 1.0]), torch.tensor([nan, inf, -inf, 1.0])),
        (torch.ones(3), torch.ones(3) * (1 + 5e-5)),
        (torch.empty(0, 4), torch.empty(0, 4)),
        (torch.tensor(2**62 + 1), torch.tensor(2**62 + 1)),
        (3, torch.tensor(3)),
        (0.1, torch.tensor(0.1)),
        (0.1, torch.tensor(0.1, dtype=torch.float64)),
        (True, torch.tensor(True)),
        (torch.tensor([1 + 2j]), torch.tensor([[1.0, 2.0]])),
        ({"a": torch.ones(1), "b": (None, torch.zeros(1))}, [torch.ones(1), torch.zeros(1)]),
        (torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16) * 1.01),
        (torch.tensor([nan, 1.5]).to(torch.float8_e4m3fn), torch.tensor([nan, 1.5]).to(torch.float8_e4m3fn)),
        (torch.ones(2).to(torch.float8_e5m2), torch.ones(2).to(torch.float8_e5m2).view(torch.uint8)),
    ],
)
def test_equal(expected, actual):
    assert result(expected, actual).status == "equal"


@pytest.mark.parametrize(
    ("expected", "actual", "kind"),
    [
        (torch.ones(3), torch.ones(3, dtype=torch.float64), "dtype"),
        (torch.ones(3), torch.ones(3, dtype=torch.int64), "dtype"),
        (1, torch.tensor(1, dtype=torch.int32), "dtype"),
        (1, torch.tensor(1.0), "dtype"),
        (torch.ones(3), torch.ones(1, 3), "shape"),
        (torch.ones(0), torch.ones(0, 1), "shape"),
        ((torch.ones(3), torch.ones(3)), torch.ones(3), "count"),
        (torch.tensor([nan, 1.0]), torch.tensor([1.0, nan]), "nan"),
        (torch.tensor([inf]), torch.tensor([-inf]), "nan"),
        (torch.ones(2).to(torch.float8_e5m2), torch.ones(2, dtype=torch.uint8), "value"),
        (torch.ones(2, dtype=torch.uint8), torch.ones(2).to(torch.float8_e5m2), "dtype"),
        (torch.tensor([3.0]), torch.tensor([inf]), "nan"),
        (torch.tensor([nan]), torch.tensor([inf]), "nan"),
        (torch.ones(3), torch.ones(3) * 1.001, "value"),
        (torch.tensor(2**62 + 1), torch.tensor(2**62), "value"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "value"),
        (torch.tensor([1 + 2j]), torch.tensor([[1.0, 2.5]]), "value"),
    ],
)
def test_differs(expected, actual, kind):
    assert kinds(expected, actual) == [kind]


def test_difference_says_where_and_how_many():
    expected = torch.zeros(2, 3)
    actual = expected.clone()
    actual[1, 2], actual[0, 1] = 7.0, 0.5
    (difference,) = result(expected, actual).differences
    assert difference.index == (1, 2)
    assert difference.message == "eager has 0 at [1, 2], this 7 (2 of 6 elements differ)"
    assert result(expected, actual).max_abs == 7.0


def test_names_follow_the_structure():
    expected = {"scores": [torch.ones(1), torch.ones(1)]}
    (difference,) = result(expected, [torch.ones(1), torch.zeros(1)]).differences
    assert difference.output == "output['scores'][1]"


def test_tolerances_can_be_replaced_but_integers_stay_exact():
    assert kinds(torch.ones(3), torch.ones(3) * 1.001, rtol=0.01) == []
    assert kinds(torch.ones(3), torch.ones(3) * (1 + 1e-5), rtol=0, atol=0) == ["value"]
    assert kinds(torch.tensor([100]), torch.tensor([101]), rtol=0.5, atol=5.0) == ["value"]


def test_subnormal_difference_is_not_lost():
    assert kinds(torch.tensor([0.0]), torch.tensor([1e-45]), rtol=0, atol=0) == ["value"]


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_table_is_above_the_round_off(dtype):
    eps = torch.finfo(dtype).eps
    assert 2 * eps < tolerance_for(dtype).rtol < 1e10 * eps
    assert tolerance_for(dtype).rtol < 0.1


@pytest.mark.parametrize(
    ("dtype", "terms", "times"),
    [
        (torch.float32, 1, 1.0),
        (torch.float32, 40_000, 1.0),
        (torch.float32, 4_000_000, 2000 * 8 * 2.0**-24 / 1e-4),
        (torch.complex64, 4_000_000, 2000 * 8 * 2.0**-24 / 1e-4),
        (torch.float64, 10**10, 1.0),
        (torch.float64, 10**14, 10**7 * 8 * 2.0**-53 / 1e-10),
        (torch.float16, 4_000_000, 1.0),
        (torch.bfloat16, 4_000_000, 1.0),
    ],
)
def test_both_bounds_grow_with_the_root_of_the_terms(dtype, terms, times):
    scaled, table = tolerance_for(dtype, terms=terms), tolerance_for(dtype)
    assert math.isclose(scaled.rtol, table.rtol * max(1.0, times))
    assert math.isclose(scaled.atol, table.atol * max(1.0, times))


def test_terms_scale_no_bound_that_is_given_and_no_integer():
    assert tolerance_for(torch.float32, rtol=1e-6, atol=0.0, terms=10**8) == Tolerance(1e-6, 0.0)
    assert tolerance_for(torch.int64, terms=10**8) == Tolerance(0.0, 0.0)


def test_terms_are_counted_where_a_value_is_beyond_the_table():
    asked = []

    def terms():
        asked.append(1)
        return 4_000_000

    found = result(torch.ones(3), torch.ones(3) * (1 + 5e-5), terms=terms)
    assert (found.status, found.terms, asked) == ("equal", 0, [])
    found = result(torch.ones(3), torch.ones(3) * (1 + 5e-4), terms=terms)
    assert (found.status, found.terms, asked) == ("equal", 4_000_000, [1])
    found = result(torch.ones(3), torch.ones(3) * (1 + 2e-3), terms=terms)
    assert (found.status, found.terms, len(asked)) == ("differs", 0, 2)
    found = result(torch.ones(3), torch.tensor([1.0, nan, 1.0]), terms=terms)
    assert (found.status, len(asked)) == ("differs", 2)


def test_float64_tells_a_constant_that_was_stored_as_float32():
    exact = torch.full((3,), 0.1, dtype=torch.float64)
    assert kinds(exact, exact.float().double()) == ["value"]


def test_dataclass_outputs_count_field_by_field():
    import dataclasses

    @dataclasses.dataclass
    class Result:
        value: torch.Tensor
        steps: int
        note: str = "ok"

    names = [output.name for output in flat_outputs(Result(torch.ones(1), 3))]
    assert names == ["output.value", "output.steps", "output.note"]
    # What is a text on all paths is no output of a file.
    assert result(Result(torch.ones(1), 3), [torch.ones(1), 3]).status == "equal"


def test_lists_and_optionals_are_compared_where_they_are():
    one, two = torch.ones(1), torch.zeros(2)

    def differences(expected, actual, texts=()):
        found = compare("program", flat_outputs(expected), placed(flat_outputs(actual)), texts=texts).differences
        return [f"{each.kind}: {each.output}: {each.message}" for each in found]

    assert differences({"a": None, "b": one}, {"a": None, "b": one}) == []
    assert differences((None, one), (one, None)) == ["count: output: eager returns output[1], program does not"]
    (uneven,) = differences(([one], [two]), ([one, two], []))
    assert uneven == "count: output: eager returns output[1][0], program does not"
    assert differences([one], [one, two]) == ["count: output: program returns output[1], eager does not"]
    assert differences((one, "up"), (one, "down")) == ["value: output[1]: eager has 'up', this 'down'"]
    assert differences((one, "up"), (one, "up")) == []
    assert differences((one, "up"), (one, None)) == []
    (missing,) = differences((one, "up"), (one, None), ["output[0]", "output[1]"])
    assert missing == "count: output: eager returns output[1], program does not"


def test_an_object_is_no_output():
    with pytest.raises(TypeError, match="neither a tensor nor a number"):
        flat_outputs([object()])


def test_relative_difference():
    found = result(torch.tensor([2.0, 0.0]), torch.tensor([2.5, 0.0]))
    assert math.isclose(found.max_rel, 0.25)


@pytest.mark.parametrize("name", ["scores", "output['scores']"])
def test_a_bound_names_the_key_of_an_output(name: str) -> None:
    def model(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"scores": x * 3, "rest": x}

    report = dy2st.check(model, [(torch.ones(2),)], rtol={name: 0.5})
    assert report.ok
    with pytest.raises(UsageError, match="there is no output 'score' to compare") as caught:
        dy2st.check(model, [(torch.ones(2),)], rtol={"score": 0.5})
    assert "rest, scores" in caught.value.hint


@pytest.mark.parametrize(
    ("output", "name"),
    [("output", "output"), ("output[1]", "output[1]"), ("output['a b'][0]", "a b[0]"), ("output.boxes", "boxes")],
)
def test_short_names(output: str, name: str) -> None:
    assert short_name(output) == name
    assert bound_for({name: 1.0, "": 2.0}, output) == 1.0
    assert bound_for({"other": 1.0, "": 2.0}, output) == 2.0
