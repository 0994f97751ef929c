"""Checks of models with state: calls that follow each other, in which the state is compared, too."""

from __future__ import annotations

import copy

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import dy2st
from dy2st.errors import CarriedStateError, DriftError, ParityError, StateWarning
from dy2st.parity.causes import Causes
from dy2st.parity.checking import compare_stages, eager_references, export_for
from dy2st.parity.stateful_calls import continued


class Hangover(nn.Module):
    """Holds a decision for some calls; the longest hold can be reached by a sequence alone."""

    def __init__(self, step=1):
        super().__init__()
        self.register_buffer("level", torch.zeros(()))
        self.left, self.step = 0, step

    def forward(self, x):
        self.level = 0.5 * self.level + 0.5 * x.abs().mean()
        if self.level > 3:
            self.left = 2
            return x
        if self.left > 0:
            self.left -= self.step
            return x / 2
        return x * 0


class Plain(nn.Module):
    """No state."""

    def forward(self, x):
        return x * 2


QUIET, LOUD = torch.full((4,), 0.5), torch.full((4,), 20.0)


def names(report):
    return [each.name for each in report.inputs]


def test_a_set_is_called_three_times():
    report = dy2st.check(Hangover(), [(QUIET,)])
    assert report.ok
    assert names(report) == ["0, call 1 of 3", "0, call 2 of 3", "0, call 3 of 3"]
    assert [each.description for each in report.inputs] == ["x: f32[4]"] * 3
    assert names(dy2st.check(Plain(), [(QUIET,)])) == ["0"]


def test_sequences_are_given():
    report = dy2st.check(
        Hangover(), {"word": [(LOUD,), (QUIET,), (QUIET,), (QUIET,), (QUIET,), (QUIET,)], "one": [(QUIET,)]}
    )
    assert report.ok
    assert report.covered
    assert names(report) == [*(f"word, call {i} of 6" for i in range(1, 7)), "one, call 1 of 1"]


def test_calls_by_keyword():
    report = dy2st.check(Hangover(), [[{"x": LOUD}, {"x": QUIET}]])
    assert report.ok
    assert len(report.inputs) == 2


def test_sequences_of_a_model_without_state_are_sets():
    report = dy2st.check(Plain(), [[(QUIET,), (LOUD,)]])
    assert report.ok
    assert len(report.inputs) == 2


def test_the_call_that_differs_is_named(tmp_path):
    """The file holds for half as long: that shows in its state in the third call, and in its result in the fourth."""
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Hangover(step=2), (QUIET,), file)
    report = dy2st.check(Hangover(), [[(LOUD,), *[(QUIET,)] * 5]], onnx_file=file)
    assert not report.ok
    wrong = [each.name for each in report.inputs if any(stage.status != "equal" for stage in each.stages)]
    assert wrong == ["0, call 3 of 6", "0, call 4 of 6"]
    assert any("call 3 of 6" in problem for problem in report.problems())
    (first,) = report.inputs[2].stages[-1].differences
    assert first.output == "left_next"


def test_the_state_is_compared(tmp_path):
    """Nothing of the state shows in the result of the same call."""

    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = torch.zeros(4)

        def forward(self, x):
            found = self.h * 1
            self.h = self.h + x
            return found

    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Late(), (QUIET,), file)
    proto = onnx.load(file)
    for node in proto.graph.node:
        if node.op_type == "Add":
            node.op_type = "Sub"
    onnx.save(proto, file)
    report = dy2st.check(Late(), [[(QUIET,), (QUIET,)]], onnx_file=file)
    assert not report.ok
    stages = [each.stages[-1] for each in report.inputs]
    assert [stage.status for stage in stages] == ["differs", "differs"]
    assert stages[0].differences[0].output == "h_next"


def test_the_line_where_a_file_departs(tmp_path):
    """The factor of the state is another one in the file: it shows where the state is no longer zero."""

    class Decaying(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = torch.zeros(4)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            scaled = self.h * 0.5
            self.h = scaled + x
            return self.h * self.calls

    file, model = tmp_path / "model.onnx", Decaying()
    references = eager_references(model, [(QUIET,)])
    program = export_for(model, references, file)
    proto = onnx.load(file)
    for each in proto.graph.initializer:
        if each.name != "h" and onnx.numpy_helper.to_array(each).dtype == np.float32:
            each.CopyFrom(onnx.numpy_helper.from_array(np.float32(0.7), each.name))
    onnx.save(proto, file)
    called, following = continued(model, references, program)
    report = compare_stages(called, following, program=program, onnx_file=file)
    statuses = [[stage.status for stage in each.stages] for each in report.inputs]
    assert statuses == [["equal"] * 3, ["equal", "equal", "differs"], ["equal", "equal", "differs"]]
    culprit = report.inputs[1].stages[-1].culprit
    assert culprit is not None
    assert culprit.variable == "scaled"


def test_eager_that_raises_in_a_later_call():
    class Limited(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            if self.calls > 2:
                raise ValueError("enough")
            return x * self.calls

    report = dy2st.check(Limited(), [[(QUIET,)] * 4])
    assert [bool(each.problem) for each in report.inputs] == [False, False, False, True]
    assert "enough" in report.inputs[2].raises
    assert "call 3 of the sequence" in report.inputs[3].problem


def test_a_set_is_called_as_often_as_eager_takes_it():
    class Filling(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.zeros(2, 4))
            self.count = 0

        def forward(self, x):
            self.rows[self.count] = x
            self.count += 1
            return self.rows.sum(0)

    report = dy2st.check(Filling(), [(QUIET,)])
    assert report.ok, str(report)
    assert names(report)[:2] in (["0, call 1 of 2", "0, call 2 of 2"], ["0, call 1 of 3", "0, call 2 of 3"])


def test_the_model_is_put_back():
    model = Hangover()
    held = copy.deepcopy(model.state_dict())
    dy2st.check(model, [[(LOUD,), (QUIET,)]])
    assert model.left == 0
    assert torch.equal(model.level, held["level"])


def test_state_in_a_plain_object_is_put_back():
    class Memory:
        def __init__(self):
            self.total, self.parts = torch.zeros(4), [torch.zeros(4)]

    class Remembering(nn.Module):
        def __init__(self):
            super().__init__()
            self.memory = Memory()

        def forward(self, x):
            self.memory.total += x
            self.memory.parts[0] = self.memory.total * 2
            return self.memory.parts[0] + self.memory.total

    model = Remembering()
    memory, total, parts = model.memory, model.memory.total, model.memory.parts
    assert dy2st.check(model, [(QUIET,), [(LOUD,), (QUIET,)]]).ok
    assert model.memory is memory
    assert memory.total is total
    assert memory.parts is parts
    assert torch.equal(total, torch.zeros(4))
    assert torch.equal(parts[0], torch.zeros(4))


def test_sizes_differ_between_sequences():
    class Batched(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = None

        def forward(self, x):
            if self.h is None:
                self.h = torch.zeros_like(x)
            self.h = self.h + x
            if self.h.sum() > 3:
                return self.h
            return -self.h

    report = dy2st.check(Batched(), [(torch.ones(3, 2),), (torch.ones(5, 2),), (-torch.ones(1, 2),)])
    assert report.ok, str(report)
    assert report.covered
    assert len(report.inputs) == 9


class Cached(nn.Module):
    """Keys of all calls, for each element of a batch."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.keys = None

    def forward(self, x):
        keys = self.linear(x)
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 1)
        return (x @ self.keys.transpose(1, 2)).softmax(-1) @ self.keys


class Causal(nn.Module):
    """A convolution that remembers the end of the last piece."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 3, 3)
        self.context = None

    def forward(self, x):
        if self.context is None:
            self.context = x.new_zeros(x.shape[0], 4, 2)
        whole = torch.cat([self.context, x.transpose(1, 2)], 2)
        self.context = whole[:, :, -2:]
        return self.conv(whole)


@pytest.mark.parametrize("kind", [Cached, Causal])
def test_state_of_several_sizes(kind):
    torch.manual_seed(0)
    pieces = [(torch.randn(3, length, 4),) for length in (5, 2, 4)]
    report = dy2st.check(kind().eval(), [(torch.randn(2, 3, 4),), (torch.randn(4, 3, 4),), pieces])
    assert report.ok, str(report)
    assert len(report.inputs) == 9


def test_what_becomes_of_state():
    with pytest.warns(StateWarning, match="forgets level, Hangover.left"):
        report = dy2st.check(Hangover(), [(QUIET,)], state="forget")
    assert report.ok
    assert names(report) == ["0"]
    with pytest.raises(CarriedStateError):
        dy2st.check(Hangover(), [(QUIET,)], state="refuse")


@pytest.mark.slow
def test_a_search_finds_sequences():
    report = dy2st.check(Hangover(), [(QUIET,)], search=10)
    assert report.ok
    assert report.covered, str(report)
    found = {name.partition(",")[0] for name in names(report)} - {"0"}
    assert found
    assert all(f"{name}, call 3 of 3" in names(report) for name in found)


@pytest.mark.slow
def test_a_search_with_several_arguments():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.open = 0

        def forward(self, x, key):
            if key.sum() > 40:
                self.open = self.open + 1
            if self.open > 1:
                return x
            return x * 0

    report = dy2st.check(Gated(), [{"x": torch.ones(2), "key": torch.ones(1)}], search=10)
    assert report.ok
    assert report.covered, str(report)


def test_embedded_tests_carry_the_state(tmp_path):
    file = tmp_path / "model.onnx"
    model, calls = Hangover(), [[(LOUD,), *[(QUIET,)] * 5]]
    dy2st.onnx.export(model, (QUIET,), file)
    report = dy2st.embed_tests(model, calls, file)
    assert report.ok
    again = dy2st.check_embedded(file)
    assert again.ok
    assert names(again) == [f"0, call {i} of 6" for i in range(1, 7)]
    proto = onnx.load(file)
    for node in proto.graph.node:
        if node.op_type == "Sub":
            node.op_type = "Add"
    changed = onnx.load(file)
    for initial in changed.graph.initializer:
        if initial.name == "level":
            initial.CopyFrom(onnx.numpy_helper.from_array(np.float32(7), "level"))
    onnx.save(changed, file)
    outcomes = [each.outcome for each in dy2st.check_embedded(file).inputs]
    assert outcomes == ["differs", *["equal"] * 5]  # the first call starts from the file's own state


def test_embedded_tests_see_what_is_wrong(tmp_path):
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Hangover(step=2), (QUIET,), file)
    with pytest.raises(ParityError, match="call"):
        dy2st.embed_tests(Hangover(), [[(LOUD,), *[(QUIET,)] * 5]], file)


def test_a_file_that_is_given(tmp_path):
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Hangover(), (QUIET,), file)
    report = dy2st.check(Hangover(), [[(LOUD,), *[(QUIET,)] * 5]], onnx_file=file)
    assert report.ok, str(report)
    assert len(report.inputs) == 6
    other = tmp_path / "other.onnx"
    dy2st.onnx.export(Hangover(step=2), (QUIET,), other)
    assert not dy2st.check(Hangover(), [[(LOUD,), *[(QUIET,)] * 5]], onnx_file=other).ok


def test_shadow_carries_both_states(tmp_path):
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Hangover(), (QUIET,), file)
    alone = Hangover()
    for answer in ("static", "eager"):
        eager, expected = Hangover(), copy.deepcopy(alone)
        shadowed = dy2st.shadow(eager, file, rate=0.5, seed=0, answer=answer)
        with torch.no_grad():
            for x in (LOUD, *[QUIET] * 6, LOUD, *[QUIET] * 6):
                torch.testing.assert_close(shadowed(x.clone()), expected(x.clone()))
        assert eager.left == expected.left
        counts = shadowed.counts
        assert counts.calls == 14
        assert 0 < counts.compared < 14
        assert counts.equal == counts.compared
        shadowed.reset()
        if answer == "static":
            assert not shadowed(QUIET).any()


def test_shadow_sees_a_file_that_drifts(tmp_path):
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Hangover(step=2), (QUIET,), file)
    shadowed = dy2st.shadow(Hangover(), file, rate=1.0, on_difference="raise")
    with torch.no_grad():
        for x in (LOUD, *[QUIET] * 2):
            shadowed(x)
        with pytest.raises(DriftError, match="call 4"):
            for _ in range(3):
                shadowed(QUIET)


class Bounds(nn.Module):
    """Two states of one dtype and shape."""

    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.full((2,), 9.0))
        self.register_buffer("high", torch.full((2,), -9.0))

    def forward(self, x):
        self.low, self.high = torch.minimum(self.low, x), torch.maximum(self.high, x)
        return (x - self.low) / (self.high - self.low + 1)


def test_state_that_the_metadata_mixes_up(tmp_path):
    inputs, file = [[(torch.tensor([1.0, 2.0]),), (torch.tensor([-3.0, 4.0]),)]], tmp_path / "m.onnx"
    dy2st.onnx.export(Bounds(), inputs[0][0], file)
    assert dy2st.check(Bounds(), inputs, onnx_file=file).ok
    assert dy2st.embed_tests(Bounds(), inputs, file).ok
    assert dy2st.check_embedded(file).ok
    proto = onnx.load(file)
    entry = next(each for each in proto.metadata_props if each.key == "dy2st.state")
    entry.value = entry.value.replace("low_next", "?").replace("high_next", "low_next").replace("?", "high_next")
    onnx.save(proto, file)
    assert not dy2st.check(Bounds(), inputs, onnx_file=file).ok
    assert not dy2st.check(Bounds(), inputs, onnx_file=file, isolated=True).ok
    report = dy2st.check_embedded(file)
    assert [each.outcome for each in report.inputs] == ["differs"] * 2
    assert "low goes on as low_next, and this file says high_next" in str(report)
    shadowed = dy2st.shadow(Bounds(), file, rate=1.0, on_difference="raise")
    with torch.no_grad(), pytest.raises(DriftError, match="call 3"):
        for (x,) in (*inputs[0], inputs[0][0]):
            shadowed(x)


class Counting(nn.Module):
    """Counts sums beyond a limit."""

    def __init__(self, *, at_least):
        super().__init__()
        self.at_least = at_least
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        limit = float(torch.tensor([0.1, 0.2]).sum())
        if (x.sum() >= limit) if self.at_least else (x.sum() > limit):
            self.n = self.n + 1
        return self.n * 2


@pytest.fixture
def counted(tmp_path):
    """The report on a file that counts one more in the second of four calls."""
    file = tmp_path / "other.onnx"
    dy2st.onnx.export(Counting(at_least=True), (torch.zeros(2),), file)
    tie, far, near = torch.tensor([0.1, 0.2]), torch.ones(2), torch.zeros(2)
    return lambda: dy2st.check(Counting(at_least=False), [[(far,), (tie,), (far,), (near,)]], onnx_file=file)


def test_what_follows_from_another_state_is_said_to(counted):
    messages = [each.stages[-1].message for each in counted().inputs]
    assert messages[0] == ""
    assert messages[1].startswith("a near tie: ")
    assert messages[2:] == ["an earlier call has left another state"] * 2


def test_what_follows_a_call_that_is_no_evidence_starts_from_eagers_state(counted, monkeypatch):
    monkeypatch.setattr(Causes, "no_evidence", lambda *_: "no evidence: luck")
    inputs = counted().inputs
    assert [each.problem for each in inputs] == ["", "no evidence: luck", "", ""]
    assert all(stage.status == "equal" for each in inputs for stage in each.stages)
