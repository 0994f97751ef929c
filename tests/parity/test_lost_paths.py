"""A set on which rounding alone takes eager to other paths is no evidence; any other is, whatever a file returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dy2st
import dy2st.onnx
from dy2st.parity.causes import Causes
from dy2st.parity.inputs import InputSet
from dy2st.parity.lost_paths import Lost
from dy2st.parity.outputs import Output, flat_outputs
from dy2st.parity.stages import Reference, eager_reference
from dy2st.report.model import NO_EVIDENCE

LUCK = torch.linspace(0.1, 1.7, 37)


def rounds(x: Tensor) -> tuple[Tensor, int, Tensor]:
    """Goes on until a residual is below the noise of its own sums."""
    steps, total = 0, x.sum()
    while (total - x.sum()).abs() <= 2e-6 and steps < 40:
        total = (total * 1.1) / 1.1
        total = torch.sqrt(total * total)
        steps += 1
    return total, steps, x * 2


def halved(x: Tensor) -> tuple[Tensor, int]:
    """Stops far from a threshold, if the largest element is no power of two."""
    steps = 0
    while x.abs().max() > 1:
        x = x / 2
        steps += 1
    return x, steps


def chosen(x: Tensor) -> Tensor:
    """Takes the one way or the other, by a sum that is not near 0."""
    if x.sum() > 0:
        return x + 1
    return x * 3


def without_control(x: Tensor) -> Tensor:
    return torch.softmax(x, 0)


def judged(model: Any, x: Tensor) -> tuple[Causes, Reference]:
    return Causes(model), eager_reference(model, InputSet("0", (x,)))


def test_a_way_that_rounding_decides_is_no_evidence() -> None:
    causes, reference = judged(rounds, LUCK)
    total, steps, twice = (each.tensor for each in reference.outputs)
    said = causes.no_evidence(reference, flat_outputs((total, steps + 1, twice)))
    assert said.startswith(f"{NO_EVIDENCE}rounding alone takes eager to another path in ")
    assert "the loop at " in said
    assert "test_lost_paths.py" in said


def test_what_noise_leaves_alone_has_to_agree_even_there() -> None:
    causes, reference = judged(rounds, LUCK)
    total, steps, twice = (each.tensor for each in reference.outputs)
    for wrong in (
        (total, steps + 1, twice + 1e-3),
        (total + 1, steps, twice),
        (total * float("nan"), steps, twice),
        (total, steps + 1000, twice),
        (total, steps.int() + 1, twice),
        (total, steps + 1, twice[1:]),
        (total, steps + 1),
    ):
        assert not causes.no_evidence(reference, flat_outputs(wrong))


STABLE = st.sampled_from([halved, chosen, without_control])
# Sums, maxima and margins are far from where a way is decided.
NUMBERS = st.lists(st.floats(0.3, 0.45) | st.floats(2.2, 3.8) | st.floats(4.5, 7.5), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(model=STABLE, numbers=NUMBERS, sign=st.sampled_from([1, -1]), data=st.data())
def test_a_wrong_file_of_a_stable_model_is_never_excused(model: Any, numbers: Any, sign: int, data: Any) -> None:
    causes, reference = judged(model, sign * torch.tensor(numbers))
    outputs = [each.copied() for each in reference.outputs]
    number = data.draw(st.integers(0, len(outputs) - 1))
    outputs[number] = mutant(outputs[number], data)
    assert causes.no_evidence(reference, outputs) == ""


def mutant(output: Output, data: Any) -> Output:
    value = output.tensor.clone()
    flat = value.view(-1)
    place = data.draw(st.integers(0, flat.numel() - 1))
    if value.is_floating_point():
        flat[place] += data.draw(st.sampled_from([1e-3, -0.5, float("nan"), float("inf")]))
    else:
        flat[place] += data.draw(st.integers(1, 3))
    return Output(output.name, value, output.is_number)


@pytest.fixture(scope="module")
def other_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that makes another number of rounds than eager."""
    file = tmp_path_factory.mktemp("files") / "model.onnx"

    def later(x: Tensor) -> tuple[Tensor, int, Tensor]:
        total, steps, twice = rounds(x)
        return total, steps + 1, twice

    dy2st.onnx.export(later, (LUCK,), file)
    return file


def test_a_check_says_so_and_is_not_equal(other_file: Path) -> None:
    report = dy2st.check(rounds, [(LUCK,)], onnx_file=other_file)
    assert report.outcome == "unusable"
    assert NO_EVIDENCE in str(report)
    with pytest.raises(dy2st.errors.UnusableInputError, match="no evidence"):
        report.raise_if_different()


@pytest.mark.slow
def test_sets_that_are_evidence_decide(other_file: Path) -> None:
    steady = torch.zeros(37)
    report = dy2st.check(rounds, [(LUCK,), (steady,)], onnx_file=other_file)
    assert [each.outcome for each in report.inputs] == ["unusable", "differs"]
    assert report.outcome == "differs"


def test_a_bound_that_is_given_is_kept(other_file: Path) -> None:
    assert dy2st.check(rounds, [(LUCK,)], onnx_file=other_file, atol=1e-9).outcome == "differs"


def _one(values: list[float]) -> list[Output]:
    return flat_outputs(torch.tensor(values))


@pytest.mark.parametrize(
    ("moved", "actual", "covered"),
    [
        ([0.0, 0.5], [10.0, 70.0], True),  # 5 % of the largest: it can be anything
        ([0.0, float("inf")], [10.0, float("nan")], True),
        ([0.0, 0.01], [10.0, 70.0], False),
        ([0.5, 0.0], [10.0, 70.0], False),  # another element
        ([0.0, 1e-6], [10.0, 70.0], False),  # of a small number it is much, and of the output nothing
    ],
)
def test_what_goes_far_goes_anywhere(moved: list[float], actual: list[float], covered: bool) -> None:
    expected = _one([10.0, 1e-7])
    lost = Lost("", [torch.tensor(moved, dtype=torch.float64)], chaotic=True)
    assert lost.covers(expected, _one(actual)) is covered
    if float("inf") not in moved:
        assert not Lost("", lost.moved).covers(expected, _one([10.0, 70.0]))
