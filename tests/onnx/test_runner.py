"""``dy2st.onnx.Runner``: the state of a file between calls, on onnxruntime, without torch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import dy2st
from dy2st.errors import OnnxError, UsageError
from dy2st.onnx import Runner


class Mean(nn.Module):
    """The mean of all calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.count = 0

    def forward(self, x, weight):
        self.total = self.total + weight * x
        self.count += 1
        return self.total / self.count, self.total.sum()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("runner") / "mean.onnx"
    dy2st.onnx.export(Mean(), (torch.ones(2), torch.ones(())), path, output_names=["mean", "sum"])
    return path


ONES = np.ones(2, np.float32)


def test_outputs_and_state(file):
    runner = Runner(file)
    assert (runner.input_names, runner.output_names) == (["x", "weight"], ["mean", "sum"])
    assert dict(runner.state) == {}
    mean, total = runner(ONES, 1.0)
    assert mean.tolist() == [1, 1]
    assert total == 2
    mean, _ = runner(3 * ONES, weight=1.0)
    assert mean.tolist() == [2, 2]
    assert runner.state["count"] == 2
    assert runner.state["total"].tolist() == [4, 4]
    assert runner.state["total"].dtype == np.float32


def test_reset(file):
    runner = Runner(file)
    first = runner(ONES, 1.0)[0]
    runner(ONES * 5, 1.0)
    runner.reset()
    np.testing.assert_array_equal(runner(ONES, 1.0)[0], first)


def test_state_is_saved_and_put_back(file):
    runner = Runner(file)
    runner(ONES, 1.0)
    saved = dict(runner.state)
    expected = runner(ONES * 2, 1.0)[0]
    other = Runner(file)
    other.state = saved
    np.testing.assert_array_equal(other(ONES * 2, 1.0)[0], expected)
    runner.state = saved
    np.testing.assert_array_equal(runner(ONES * 2, 1.0)[0], expected)


def test_a_part_of_the_state(file):
    runner = Runner(file)
    runner.state["count"] = 9
    assert runner(ONES * 10, 1.0)[0].tolist() == [1, 1]
    runner.state = {"total": [5, 5]}
    assert runner(ONES, 1.0)[0].tolist() == [6, 6]
    del runner.state["total"]
    assert runner(ONES, 1.0)[1] == 2
    assert len(runner.state) == 2
    assert "count" in repr(runner.state)


def test_a_call_that_fails_leaves_the_state(file):
    runner = Runner(file)
    runner(ONES, 1.0)
    before = dict(runner.state)
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        runner(np.ones(7, np.float32), 1.0)
    assert all(runner.state[name] is value for name, value in before.items())


def test_what_is_refused(file):
    runner = Runner(file)
    with pytest.raises(UsageError, match="'weight' is missing; the inputs are x, weight"):
        runner(ONES)
    with pytest.raises(UsageError, match="3 arguments are given"):
        runner(ONES, 1.0, 1.0)
    with pytest.raises(UsageError, match="'x' is given twice"):
        runner(ONES, 1.0, x=ONES)
    with pytest.raises(UsageError, match="'count' is no input") as raised:
        runner(ONES, 1.0, count=1)
    assert "runner.state" in raised.value.hint
    with pytest.raises(UsageError, match="no state 'totals'") as raised:
        runner.state["totals"] = ONES
    assert "total, count" in raised.value.hint
    with pytest.raises(UsageError, match="no state 'x'"):
        runner.state = {"x": ONES}


def test_a_file_without_state(tmp_path):
    dy2st.onnx.export(nn.ReLU(), (torch.ones(2),), tmp_path / "relu.onnx")
    runner = Runner(tmp_path / "relu.onnx", providers=["CPUExecutionProvider"])
    assert runner(-ONES)[0].tolist() == [0, 0]
    assert dict(runner.state) == {}


def test_it_needs_no_torch(file):
    code = f"""
import sys
sys.modules["torch"] = None
import numpy as np, dy2st
runner = dy2st.onnx.Runner({str(file)!r})
for _ in range(3):
    mean, total = runner(np.full(2, 3, np.float32), 1.0)
print(mean.tolist(), float(total), int(runner.state["count"]))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[3.0, 3.0] 18.0 3"


@pytest.mark.parametrize("content", [None, b"", b"no model"])
def test_what_is_no_file(content, tmp_path):
    file = tmp_path / "model.onnx"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(OnnxError, match="onnxruntime can't load the file"):
        Runner(file)
