"""``dy2st.onnx.Runner``: the state of a file between calls, on onnxruntime, without torch."""

from __future__ import annotations

import copy
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


class Positive(Mean):
    """Takes no negative sums."""

    def forward(self, x, weight):
        found = super().forward(x, weight)
        if found[1] < 0:
            raise ValueError("a negative sum")
        return found


def test_a_call_that_fails_leaves_the_state(tmp_path):
    dy2st.onnx.export(Positive(), (torch.ones(2), torch.ones(())), tmp_path / "positive.onnx")
    runner = Runner(tmp_path / "positive.onnx")
    runner(ONES, 1.0)
    before = dict(runner.state)
    with pytest.raises(Exception, match="a negative sum"):
        runner(-7 * ONES, 1.0)
    assert all(runner.state[name] is value for name, value in before.items())


def test_arrays_have_the_shape_of_the_file(file, tmp_path):
    runner = Runner(file)
    with pytest.raises(UsageError, match=r"'x' has the shape \[7\], and the file takes \[2\]"):
        runner(np.ones(7, np.float32), 1.0)
    with pytest.raises(UsageError, match=r"'weight' has the shape \[1\], and the file takes \[\]"):
        runner(ONES, [1.0])
    with pytest.raises(UsageError, match=r"'total' has the shape \[2, 1\], and the file takes \[2\]"):
        runner.state["total"] = ONES[:, None]
    rows = torch.ones(3, 2)
    dy2st.onnx.export(nn.ReLU(), (rows,), tmp_path / "relu.onnx", dynamic_shapes={"input": {0: torch.export.Dim("n")}})
    relu = Runner(tmp_path / "relu.onnx")
    assert relu(np.ones((5, 2), np.float32))[0].shape == (5, 2)
    with pytest.raises(UsageError, match=r"'input' has the shape \[5, 3\], and the file takes \[n, 2\]"):
        relu(np.ones((5, 3), np.float32))


class Pair(nn.Module):
    """Holds nothing before the first call, and a pair after it."""

    def __init__(self):
        super().__init__()
        self.held = None

    def forward(self, x):
        low, high = (x, x) if self.held is None else self.held
        self.held = torch.minimum(low, x), torch.maximum(high, x)
        return high - low


def test_state_that_may_be_absent_is_put_whole(tmp_path):
    dy2st.onnx.export(Pair(), (torch.ones(2),), tmp_path / "pair.onnx")
    runner = Runner(tmp_path / "pair.onnx")
    assert not runner(ONES)[0].any()
    saved = dict(runner.state)
    assert sorted(saved) == ["held.0", "held.1", "held_is_set"]
    # Both parts: the pair is there.
    runner.state = {"held.0": -ONES, "held.1": ONES}
    assert runner(ONES)[0].tolist() == [2, 2]
    for put in ({"held.0": ONES}, {"held_is_set": True}, {"held_is_set": np.asarray(True), "held.1": ONES}):
        runner.state = put
        with pytest.raises(UsageError, match=r"was put into the state, and 'held\.\d' was not: they come together"):
            runner(ONES)
    runner.state = {"held_is_set": False, "held.0": -ONES}
    assert runner(ONES)[0].tolist() == [0, 0]
    runner.state = saved
    assert runner(3 * ONES)[0].tolist() == [0, 0]
    del runner.state["held.0"]
    with pytest.raises(UsageError, match=r"'held\.0' was not"):
        runner(ONES)


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


class Counted(nn.Module):
    """State of a dtype that numpy lacks, and inputs that are integers and bools."""

    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.zeros(2, dtype=torch.bfloat16))

    def forward(self, x, k, on):
        self.level = self.level * 0.5 + x.bfloat16()
        return self.level * 2, k + 1, ~on


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    path = tmp_path_factory.mktemp("counted") / "counted.onnx"
    dy2st.onnx.export(Counted(), (torch.ones(2), torch.tensor(3, dtype=torch.int32), torch.tensor(True)), path)
    return path


def test_numbers_are_what_they_were_or_refused(counted):
    runner = Runner(counted)
    assert [each.tolist() for each in runner(ONES, 4, True)[1:]] == [5, False]
    assert runner(ONES, True, 0)[1] == 2
    assert runner([1, 2], 4.0, False)[1] == 5
    for k, on in ((2.7, True), (float("nan"), True), (2**40, True), (3, 2), (3, 0.5)):
        with pytest.raises(UsageError, match="would be another value there"):
            runner(ONES, k, on)
    with pytest.raises(UsageError, match="can't be made an array of float32"):
        runner([[1], [1, 2]], 3, True)
    with pytest.raises(UsageError, match="'level' is an array of float64, and the file takes bfloat16"):
        runner.state["level"] = np.zeros(2)


def test_arrays_have_the_dtype_of_the_file(counted):
    runner = Runner(counted)
    for x in (np.ones(2), ONES.astype(np.float16), np.ones(2, np.int64), ONES + 1j):
        with pytest.raises(UsageError, match=f"'x' is an array of {x.dtype}, and the file takes float32"):
            runner(x, 3, True)
    for x in (None, "a"):
        with pytest.raises(UsageError, match=r"'x' is .*, and the file takes float32"):
            runner(x, 3, True)


def test_the_order_of_bytes_is_no_matter(counted):
    first, second = Runner(counted), Runner(counted)
    swapped = np.array([1.5, -3.0], ">f4")
    for given, same in zip(first(swapped, 3, True), second(swapped.astype("<f4"), 3, True), strict=True):
        np.testing.assert_array_equal(given, same)


def test_state_of_bfloat16(counted):
    runner, model = Runner(counted), Counted()
    x = np.array([0.1, -7.3], np.float32)
    for _ in range(20):
        given, wanted = runner(x, 3, True)[0], model(torch.tensor(x), torch.tensor(3), torch.tensor(True))[0]
        assert str(given.dtype) == str(runner.state["level"].dtype) == "bfloat16"
        assert given.astype(np.float32).tolist() == wanted.tolist()
    saved = dict(runner.state)
    after = runner(x, 3, True)[0].tolist()
    runner.state = saved
    assert runner(x, 3, True)[0].tolist() == after
    runner.state["level"] = torch.ones(2, dtype=torch.bfloat16)
    assert runner(0 * x, 3, True)[0].tolist() == [1, 1]


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy])
def test_a_copy_has_state_of_its_own(file, made):
    runner = Runner(file)
    runner(ONES, 1.0)
    other = made(runner)
    assert other.session is runner.session
    assert other(ONES * 3, 1.0)[0].tolist() == [2, 2]
    assert (runner.state["count"], other.state["count"]) == (1, 2)
    assert runner(ONES * 5, 1.0)[0].tolist() == [3, 3]
    other.reset()
    assert len(runner.state) == 2


def test_state_is_no_array_of_the_caller(file):
    runner, total = Runner(file), np.zeros(2, np.float32)
    runner.state["total"] = total
    total[:] = 100
    assert runner(ONES, 1.0)[1] == 2
