"""Wrong files that take every path rightly: they show on more inputs, at ties, and in a file's own first state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor, nn

import dy2st
import dy2st.onnx
from dy2st.parity.causes import Causes, decides_exactly
from dy2st.parity.checking import compare_stages, eager_references, export_for
from dy2st.parity.inputs import InputSet
from dy2st.parity.missing_paths import find_missing
from dy2st.parity.more_sets import MoreSets
from dy2st.parity.stages import eager_reference
from dy2st.parity.stateful_calls import continued
from dy2st.parity.undefined_casts import converts_undefined
from dy2st.report.parity_report import ParityReport
from tests.fuzz.mutated_models import around, ladder

LOOSER = {"Less": "LessOrEqual", "LessOrEqual": "Less", "Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater"}
Change = Callable[[onnx.ModelProto], None]


def smooth(x: Tensor) -> Tensor:
    """The two arms meet smoothly at the limit: near to it a wrong limit shows nowhere."""
    size = x[0].abs()
    return 0.5 * size * size if size <= 1.0 else size - 0.5


def mean_above(x: Tensor) -> Tensor:
    return x.sum() if x.mean() > 1 else x.prod() + 5


def largest(x: Tensor) -> Tensor:
    """NaN is the largest of all numbers."""
    return x / x.max() if x.max() > 1.5 else x


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("level", torch.tensor(2.0))

    def forward(self, x: Tensor) -> Tensor:
        self.level = 0.5 * self.level + x.mean()
        return x * self.level


def judged(model: Any, file: Path, change: Change | None, inputs: list[Any], seconds: float = 10) -> ParityReport:
    """A check of a file that was changed, as the command line makes it."""
    references = eager_references(model, inputs)
    program = export_for(model, references, file)
    proto = onnx.load(file)
    if change is not None:
        change(proto)
    onnx.save(proto, file)
    found = find_missing(model, references, program, seconds=seconds)
    references += [eager_reference(model, each) for each in found.sets]
    others = MoreSets(model, found.more, program, seconds)
    called, references = continued(model, references, program)
    return compare_stages(called, references, program=program, onnx_file=file, others=others)


def constant(value: float, other: float) -> Change:
    """All constants of a value become another one."""

    def change(model: onnx.ModelProto) -> None:
        found = [each for each in model.graph.initializer if numpy_helper.to_array(each).tolist() == value]
        assert found
        for each in found:
            dtype = numpy_helper.to_array(each).dtype
            each.CopyFrom(numpy_helper.from_array(np.array(other, dtype), each.name))

    return change


def loosened(model: onnx.ModelProto) -> None:
    """``<`` becomes ``<=``."""
    nodes = [each for each in model.graph.node if each.op_type in LOOSER]
    assert nodes
    for node in nodes:
        node.op_type = LOOSER[node.op_type]


def loosened_copy(number: int) -> Change:
    """The comparison of one copy of ``<``."""

    def change(model: onnx.ModelProto) -> None:
        found = [each for graph in graphs(model.graph) for each in graph.node if each.op_type == "Less"]
        assert len(found) > number
        found[number].op_type = "LessOrEqual"

    return change


def forgetful_of_nan(model: onnx.ModelProto) -> None:
    """All elements have to be NaN, where one is enough."""
    nodes = [each for each in model.graph.node if each.op_type == "ReduceMax"]
    masks = {each.output[0] for each in model.graph.node if each.op_type in ("IsNaN", "Cast")}
    found = [each for each in nodes if each.input[0] in masks]
    assert found
    for each in found:
        each.op_type = "ReduceMin"


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those inside of its nodes."""
    yield graph
    for attribute in (each for node in graph.node for each in node.attribute):
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield from graphs(attribute.g)


VECTORS = [(torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([-1.0, 0.5, 0.25]),)]


@pytest.mark.slow_but_for("smooth-None", "mean_above-loosened", "largest-None", "smooth-change")
@pytest.mark.parametrize(
    ("model", "change"),
    [
        pytest.param(around, constant(4.0, 4.25), marks=pytest.mark.slow),
        (smooth, constant(1.0, 1.1)),
        (mean_above, loosened),
        *((ladder, loosened_copy(number)) for number in (1, 2)),
        (largest, forgetful_of_nan),
        (ladder, None),
        (largest, None),
        (smooth, None),
        (around, None),
    ],
)
def test_wrong_files_are_found(tmp_path: Path, model: Any, change: Change | None) -> None:
    report = judged(model, tmp_path / "m.onnx", change, VECTORS)
    assert report.ok == (change is None), report.problems()
    assert report.covered
    assert any(each.name.startswith("more_") for each in report.inputs) == (change is not None)


@pytest.mark.slow
def test_a_wrong_first_state_is_found(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    assert judged(Held(), file, None, VECTORS, seconds=1).ok
    report = judged(Held(), file, constant(2.0, 2.5), VECTORS, seconds=1)
    assert [each.outcome for each in report.inputs[:3]] == ["differs"] * 3


def test_tests_beside_a_file_begin_with_its_own_first_state(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    dy2st.onnx.export(Held(), VECTORS[0], file)
    dy2st.embed_tests(Held(), [VECTORS[0]], file)
    assert dy2st.check_embedded(file).ok
    proto = onnx.load(file)
    constant(2.0, 2.5)(proto)
    onnx.save(proto, file)
    assert [each.outcome for each in dy2st.check_embedded(file).inputs] == ["differs", "equal", "equal"]


@pytest.mark.parametrize(
    ("model", "values", "exact"),
    [
        (mean_above, [1.0, 1.0, 1.0], True),
        (mean_above, [1.0, 0.5, 1.5], True),
        (mean_above, [0.1, 0.9, 2.0], False),  # 0.1 and 0.9 are no numbers of few digits
        (mean_above, [1e8, -1e8, 3.0], False),  # another order of additions gives 0
        (mean_above, [0.1, 0.9, 3.0], True),  # what is rounded is far from the limit
        (lambda x: x if x.exp().sum() > 3 else -x, [0.0, 0.0, 0.0], False),  # kernels of exp differ
        (lambda x: x if x.sum().item() > 3 else -x, [1.0, 1.0, 1.0], True),
        (lambda x: x if x.sum().item() * 0.1 > 0.3 else -x, [1.0, 1.0, 1.0], False),  # Python computes in double
        (lambda x: (x if x.sum() > 3 else -x).softmax(0), [1.0, 1.0, 1.0], True),  # rounded after the decision
        (lambda x: x if x.softmax(0)[0] > 1 / 3 else -x, [1.0, 1.0, 1.0], False),
    ],
)
def test_exact_decisions(model: Any, values: list[float], exact: bool) -> None:
    assert decides_exactly(model, InputSet("x", (torch.tensor(values),))) is exact


def test_what_is_rounded_is_still_no_evidence() -> None:
    def model(x: Tensor) -> Tensor:
        return x if x.exp().log().sum() > 3.3 else -x

    report = dy2st.check(model, VECTORS, search=2)
    assert report.ok, report.problems()


def test_the_line_says_how_many() -> None:
    report = dy2st.check(mean_above, VECTORS, search=2)
    assert report.ok
    assert report.searched.endswith("; the file compared on 40 more inputs")


def halved(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    """For a limit that is not positive the loop never ends."""
    steps = 0
    while x.abs().sum() > limit:
        x, steps = x / 2, steps + 1
    return x, steps


def test_inputs_on_which_eager_never_ends_are_left_out(tmp_path: Path) -> None:
    inputs = [(torch.tensor([3.0, 4.0]), torch.tensor(1.0)), (torch.tensor([0.5, 0.0]), torch.tensor(1.0))]
    report = judged(halved, tmp_path / "halved.onnx", None, inputs, seconds=5)
    assert report.outcome == "equal"


def chaotic(x: Tensor) -> Tensor:
    """Each step doubles the error of the last: of float32 nothing is left after thirty."""
    for _ in range(60):
        x = 3.9 * x * (1 - x)
    return x * 2 if x.sum() > 0.5 else -x


def tie(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 3 else -x


def test_what_many_steps_make_of_rounding_is_not_exact() -> None:
    assert not Causes(chaotic).exact(InputSet("far from the limit", (torch.tensor([0.3]),), {}))
    assert Causes(tie).exact(InputSet("just at it", (torch.ones(3),), {}))


@pytest.mark.parametrize(
    ("value", "dtype", "undefined"),
    [
        (float("nan"), torch.int64, True),
        (float("inf"), torch.int32, True),
        (3e9, torch.int32, True),
        (2.0**63, torch.int64, True),
        (-(2.0**63), torch.int64, False),
        (3.7, torch.int8, False),
        (float("nan"), torch.bool, False),
        (float("inf"), torch.float16, False),
    ],
)
def test_what_has_no_integer(value: float, dtype: torch.dtype, undefined: bool) -> None:
    inputs = InputSet("x", (torch.tensor([1.0, value], dtype=torch.float64),))
    assert converts_undefined(lambda x: x.to(dtype), inputs) is undefined
