"""Streams of many calls: what three calls of a model with state do not lead to is covered, and compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor, nn

import dy2st
from dy2st.capture.carried_state import PREFIX
from dy2st.embedded.recorded import path_of_tests
from dy2st.parity.inputs import InputSet
from dy2st.parity.long_streams import compared_calls
from dy2st.parity.outputs import Output
from dy2st.parity.stages import Reference
from tests.parity.test_more_sets import constant, judged

VECTORS = [(torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([-1.0, 0.5, 0.25]),)]


class Ring(nn.Module):
    """No path knows when the ring begins again."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("ring", torch.zeros(size))
        self.register_buffer("at", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.ring[self.at] = x.mean()
        self.at = (self.at + 1) % self.size
        return self.ring.sum()


class Warm(nn.Module):
    """Another path is taken by the eleventh call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * 2 if self.calls > 10 else x


class Held(nn.Module):
    """A hold of eight calls runs out."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 0

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 1:
            self.left = 8
        elif self.left > 0:
            self.left -= 1
            if self.left == 0:
                return x * 0
        return x


class Chaotic(nn.Module):
    """Rounding doubles from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.tensor(0.3))

    def forward(self, x: Tensor) -> Tensor:
        self.h = 3.9 * self.h * (1 - self.h)
        return self.h + x.tanh() if self.h > 0.5 else self.h - x


class Full(nn.Module):
    """Eager takes no more than five calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("slots", torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        self.slots[self.calls] = x.sum()
        self.calls += 1
        return self.slots * 2


@pytest.mark.slow
@pytest.mark.parametrize("size", [6, 50])
def test_where_a_ring_begins_again(tmp_path: Path, size: int) -> None:
    assert judged(Ring(size), tmp_path / "m.onnx", None, VECTORS, seconds=4).ok
    report = judged(Ring(size), tmp_path / "m.onnx", constant(size, size + 1), VECTORS, seconds=4)
    assert not report.ok
    assert any("at_next: eager has 0" in each for each in report.problems())


@pytest.mark.slow_but_for("model0")
@pytest.mark.parametrize("model", [Warm(), Held()])
def test_paths_of_later_calls(model: nn.Module) -> None:
    report = dy2st.check(model, VECTORS, search=2)
    assert report.ok
    assert report.covered, report.problems()


@pytest.mark.slow_but_for("model1")
@pytest.mark.parametrize("model", [Chaotic(), Full(), Ring(7), Held()])
def test_right_files_are_equal(tmp_path: Path, model: nn.Module) -> None:
    report = judged(model, tmp_path / "m.onnx", None, VECTORS, seconds=4)
    assert report.ok, report.problems()
    assert all(each.outcome == "equal" for each in report.inputs)


def reference(before: list[float], after: list[float], name: str = "") -> Reference:
    inputs = InputSet(name, (), {f"{PREFIX}{i}": torch.tensor(each) for i, each in enumerate(before)}, ("s", 0, 400))
    return Reference(inputs, tuple(Output("h_next", torch.tensor(each)) for each in after))


@pytest.mark.parametrize("noise", [lambda i: 0.5 + i, lambda i: float(i * i)])
def test_the_calls_that_are_compared(noise: Callable[[int], float]) -> None:
    calls = [reference([i % 90, noise(i)], [(i + 1) % 90, noise(i + 1)], f"call {i}") for i in range(400)]
    found = compared_calls(calls)
    assert len(found) < 30
    assert all(each.inputs.sequence is None for each in found)
    assert "call 89" in {each.inputs.name for each in found}


@pytest.mark.slow
def test_tests_beside_a_file_have_streams(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    dy2st.onnx.export(Ring(20), VECTORS[0], file)
    assert dy2st.embed_tests(Ring(20), VECTORS, file, search=2).searched
    report = dy2st.check_embedded(file)
    assert report.ok
    assert 6 < len(report.inputs) < 60
    proto = onnx.load(file)
    size = next(each for each in proto.graph.initializer if numpy_helper.to_array(each).tolist() == 20)
    size.CopyFrom(numpy_helper.from_array(np.array(21), size.name))
    onnx.save(proto, file)
    assert any("at_next: eager has 0" in each for each in dy2st.check_embedded(file).problems())


def test_tests_beside_a_file_stay_small(tmp_path: Path) -> None:
    file, inputs = tmp_path / "m.onnx", [(torch.ones(200, 1000),)]

    def large(x: Tensor) -> Tensor:
        return x.sum(0) if x.mean() > 0.25 else x.amax(0)

    dy2st.onnx.export(large, inputs[0], file)
    assert dy2st.embed_tests(large, inputs, file, search=1).covered
    found = len(dy2st.check_embedded(file).inputs)
    assert found > 2
    assert path_of_tests(file).stat().st_size < (found + 1) * 900_000
    names = [each.name for each in dy2st.check_embedded(file).inputs]
    assert sum(each.startswith("more_") for each in names) <= 1
