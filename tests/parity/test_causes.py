"""What is said of a stage that differs, its metrics, and bounds for single outputs."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.errors import UsageError
from dy2st.parity.causes import Causes
from dy2st.parity.checking import compare_stages, eager_references, export_for
from dy2st.parity.compare import compare
from dy2st.parity.inputs import InputSet
from dy2st.parity.outputs import flat_outputs
from dy2st.parity.rounding_noise import Noise
from dy2st.parity.stages import eager_reference
from dy2st.parity.variants import variants
from dy2st.report.model import StageResult


def cause(model: Any, given: Tensor, actual: Any) -> str:
    return Causes(model).explain(eager_reference(model, InputSet("0", (given,))), flat_outputs(actual))


def test_random_numbers() -> None:
    assert "draws random numbers" in cause(lambda x: x + torch.rand(3), torch.ones(3), torch.zeros(3))


def test_another_result_each_time() -> None:
    calls = []

    def model(x: Tensor) -> Tensor:
        calls.append(1)
        return x * len(calls)

    assert "something else each time" in cause(model, torch.ones(3), torch.zeros(3))


def test_a_condition_within_rounding() -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 1 else x

    near = torch.tensor([1.0, 1e-9])
    found = cause(model, near, near * 2)
    assert found.startswith("a near tie: the if at ")
    assert found.endswith("test_causes.py:45 goes another way in float64")
    assert "near tie" not in cause(model, torch.ones(2), torch.zeros(2))


def test_a_loop_within_rounding() -> None:
    def model(x: Tensor) -> Tensor:
        while x.sum() + 1 > 1:
            x = x / 2
        return x

    assert "the loop at " in cause(model, torch.ones(1), torch.zeros(1))
    assert "makes another number of trips in float64" in cause(model, torch.ones(1), torch.zeros(1))


def test_an_argmax_within_rounding() -> None:
    given = torch.tensor([1.0, 1.0])

    def model(x: Tensor) -> Tensor:
        return (x + torch.tensor([1e-9, 2e-9], dtype=x.dtype) + 1).argmax()

    assert "in float64 eager's output is what this stage returns" in cause(model, given, torch.tensor(1))
    assert cause(model, given, torch.tensor(7)) == ""


def test_scores_that_are_equal() -> None:
    given = torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0])
    values, indices = given.topk(2)
    for others in {(1, 2), tuple(reversed(indices.tolist()))} - {tuple(indices.tolist())}:
        why = "where it takes the first of equal" if others == (1, 2) else "when numbers change in their last place"
        said = cause(lambda x: tuple(x.topk(2)), given, (values, indices.new_tensor(others)))
        assert said.startswith(f"a near tie: eager returns this, too, {why}"), others
    wrong = indices.new_tensor([3, 3])
    assert cause(lambda x: tuple(x.topk(2)), given, (values, wrong)) == ""


def test_a_sum_at_its_threshold() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return (x * 2 if x.sum() > 1 else x), x > 0.25

    given = torch.full((4,), 0.25)
    flipped = given * 2, torch.ones(4, dtype=torch.bool)
    assert cause(model, given, flipped).startswith("a near tie: eager returns this, too")
    assert cause(model, given, (given * 3, flipped[1])) == ""
    assert cause(model, given, (given[:3], flipped[1])) == ""


def test_a_tie_for_the_roundings_of_operators_alone() -> None:
    def model(x: Tensor) -> Tensor:
        # The input is of integers: nothing about it changes in a last place.
        return x * 2 if (x / 10).sum() > torch.tensor([0.6]) else x * 3

    given = torch.tensor([1, 2, 3])
    other = given * (5 - model(given)[0])
    assert cause(model, given, other).startswith("a near tie: eager returns this, too")
    assert cause(model, given, given * 4) == ""
    far = torch.tensor([1, 2, 4])
    assert cause(model, far, far * (5 - model(far)[0])) == ""


def test_errors_that_float32_amplifies() -> None:
    def model(x: Tensor) -> Tensor:
        return ((x + 1e4) - 1e4) * 1e4

    given = torch.tensor([0.12345])
    assert cause(model, given, model(given) + 4).startswith("rounding, perhaps: ")
    assert cause(model, given, model(given) + 400) == ""


def metrics(want: Any, got: Any) -> Any:
    (found,) = compare("onnxruntime", flat_outputs(want), flat_outputs(got)).outputs
    return found


@pytest.mark.slow
def test_what_noise_makes_of_eager_may_be_rounding() -> None:
    """A loop that is chaotic, and ends by what it computes: other roundings take it other ways to other ends."""

    def model(x: Tensor) -> tuple[Tensor, Tensor, int]:
        time, steps = torch.zeros(()), 0
        while time < 6 and steps < 60:
            x = 3.9 * x * (1 - x)
            time = time + 0.1 + x * 0.2
            steps += 1
        return x, time, steps

    unexplained = 0
    for place in (0.221, 0.191, 0.161, 0.311):
        given = InputSet("0", (torch.tensor(place),))
        reference, causes = eager_reference(model, given), Causes(model)
        with torch.no_grad(), Noise(101, comparisons=False):
            actual = flat_outputs(model(torch.tensor(place)))
        if causes.exact(given):
            continue
        assert causes.may_be_rounding(reference, actual)
        unexplained += not causes.explain(reference, actual)
        far = [torch.tensor(9.0), *(output.tensor for output in actual[1:2]), 60]
        assert not causes._within_noise(reference, flat_outputs(tuple(far)))
    assert unexplained


def test_metrics() -> None:
    found = metrics(torch.tensor([1.0, 2.0, -4.0]), torch.tensor([1.0, 2.5, -4.0]))
    assert (found.max_abs, found.max_rel, found.worst) == (0.5, 0.25, (1,))
    assert found.mismatched == pytest.approx(1 / 3)
    assert found.cosine == pytest.approx(22 / math.sqrt(21 * 23.25))
    one = torch.ones(2)
    assert metrics(one, torch.nextafter(one, 2 * one)).max_ulps == 1
    assert metrics(torch.tensor([-0.0]), torch.tensor([0.0])).max_ulps == 0
    tiny = torch.tensor([1e-45])
    assert metrics(-tiny, tiny).max_ulps == 2
    half = torch.ones(1, dtype=torch.bfloat16)
    assert metrics(half, half + 2**-7).max_ulps == 1
    assert metrics(torch.ones(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64) + 2**-52).max_ulps == 1
    assert metrics(torch.tensor([3]), torch.tensor([4])).max_ulps is None
    assert metrics(torch.tensor([0.0, 1.0]), torch.tensor([float("nan"), 1.0])).mismatched == 0.5


def test_bounds_for_one_output() -> None:
    def result(**bounds: Any) -> StageResult:
        want, got = [torch.ones(1), torch.ones(1)], [torch.ones(1) * 1.01, torch.ones(1) * 1.01]
        return compare("onnxruntime", flat_outputs(want), flat_outputs(got), **bounds)

    assert [d.output for d in result().differences] == ["output[0]", "output[1]"]
    assert [d.output for d in result(rtol={"output[0]": 0.1}).differences] == ["output[1]"]
    assert result(rtol={"": 0.1}).status == "equal"
    assert [d.output for d in result(rtol={"": 0.1, "output[0]": 0.0}, atol=0.0).differences] == ["output[0]"]
    with pytest.raises(UsageError, match=r"there is no output 'y' to compare"):
        dy2st.check(lambda x: x * 2, [(torch.ones(2),)], rtol={"y": 1e-3})
    with pytest.raises(UsageError, match="rtol of y is -1"):
        dy2st.check(lambda x: x * 2, [(torch.ones(2),)], rtol={"y": -1})


def test_variants(tmp_path: Any) -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x

    references = eager_references(model, [(torch.ones(2),), (-torch.ones(2),)])
    file = tmp_path / "model.onnx"
    program = export_for(model, references, file)
    more = variants(file, program, levels=True, opsets=[18, 21], providers=["CPU"])
    report = compare_stages(model, references, program=program, onnx_file=file, more=more)
    assert report.ok, str(report)
    names = [stage.stage for stage in report.inputs[0].stages]
    assert names[:3] == ["converted", "program", "onnxruntime"]
    assert names[3:] == ["no optimisation", "basic", "extended", "opset 18", "opset 21", "CPU"]
    assert report.first_to_differ == ""
    with pytest.raises(UsageError, match="no provider 'TPU' here"):
        variants(file, program, providers=["TPU"])
