"""Row 69: eager and static side by side in production."""

from __future__ import annotations

import copy
import logging
import threading
import time
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from harness import outcomes, row
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import dy2st
import dy2st.onnx
from dy2st.errors import DriftError, Dy2stError, OnnxError, UsageError


class Net(nn.Module):
    """A branch, a loop, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor, k: Tensor | None = None) -> dict[str, Tensor]:
        y = self.linear(x)
        if y.sum() > 0:
            y = y * 2
        steps = torch.zeros(())
        while y.norm() > 1:
            y = y / 2
            steps = steps + 1
        self.calls += 1
        return {"y": y if k is None else y * k, "steps": steps}


def stateless(x: Tensor) -> Tensor:
    """What the drifting ones are compared with."""
    return x * 2 if x.sum() > 0 else x - 1


def drifting(x: Tensor) -> Tensor:
    """As it, but for large values."""
    y = stateless(x)
    return y + 1e-2 if x.max() > 5 else y


INPUTS = [scale * torch.randn(n, 3) for n, scale in ((2, 1.0), (1, 5.0), (3, -2.0), (2, 9.0))]


@pytest.fixture
def onnx_file(tmp_path: Path) -> Path:
    """The function as a file."""
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(stateless, (torch.ones(2),), file, dynamic_shapes=({0: torch.export.Dim("n")},))
    return file


@row(69)
@pytest.mark.parametrize("kind", ["file", "session", "runner", "program", "module", "to_static", "function"])
def test_every_kind_of_static_side(kind: str, onnx_file: Path) -> None:
    shapes = ({0: torch.export.Dim("n")},)
    static: Any = {
        "file": lambda: onnx_file,
        "session": lambda: onnxruntime.InferenceSession(str(onnx_file)),
        "runner": lambda: dy2st.onnx.Runner(onnx_file),
        "program": lambda: dy2st.export(stateless, (torch.ones(2),), dynamic_shapes=shapes),
        "module": lambda: dy2st.export(stateless, (torch.ones(2),), dynamic_shapes=shapes).module(),
        "to_static": lambda: dy2st.to_static(stateless, input_spec=["x=f32[n]"]),
        "function": lambda: stateless,
    }[kind]()
    watched = dy2st.shadow(stateless, static, rate=1.0)
    for x in (torch.ones(3), -torch.ones(2), torch.zeros(1)):
        torch.testing.assert_close(watched(x), stateless(x))
    assert (watched.counts.calls, watched.counts.equal, watched.counts.different, watched.counts.failed) == (3, 3, 0, 0)
    assert "3 of 3 calls compared: 3 equal" in str(watched)
    outcomes.append("Y")


@row(69)
def test_the_first_difference_is_reported_and_saved(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    watched = dy2st.shadow(stateless, drifting, rate=1.0, save=tmp_path)
    with caplog.at_level(logging.WARNING, logger="dy2st.shadow"):
        for value in (1.0, -2.0, 7.0, 9.0, -8.0):
            torch.testing.assert_close(watched(torch.tensor([value, 0.5])), drifting(torch.tensor([value, 0.5])))
    assert (watched.counts.equal, watched.counts.different) == (3, 2)
    first = watched.first
    assert first is not None
    assert (first.call, first.arguments) == (3, "x: f32[2]")
    assert "eager has 14 at [0], this 14.01" in str(first)
    assert len(caplog.records) == 2
    (file,) = tmp_path.iterdir()
    assert str(file) == first.file
    ((x,),) = torch.load(file, weights_only=True)
    assert torch.equal(x, torch.tensor([7.0, 0.5]))
    # The file is what ``dy2st check --inputs`` takes: the difference can be seen again.
    report = dy2st.check(stateless, torch.load(file, weights_only=True))
    assert report.ok
    outcomes.append("Y")


@row(69)
def test_keyword_arguments_and_arguments_that_are_written_to(tmp_path: Path) -> None:
    def eager(x: Tensor, *, k: float = 1.0) -> Tensor:
        x += k
        return x * 2

    def static(x: Tensor, *, k: float = 1.0) -> Tensor:
        x += k
        return x * 2 if k < 3 else x * 3

    watched = dy2st.shadow(eager, static, rate=1.0, save=tmp_path, on_difference=lambda drift: None)
    x = torch.ones(2)
    assert torch.equal(watched(x, k=2.0), torch.full((2,), 6.0))
    assert torch.equal(x, torch.full((2,), 3.0)), "written to once"
    watched(x, k=4.0)
    assert watched.first is not None
    (saved,) = torch.load(str(watched.first.file), weights_only=True)
    assert torch.equal(saved["x"], torch.full((2,), 3.0)), "as it was before the call"
    assert saved["k"] == 4.0


@row(69)
@pytest.mark.parametrize("answer", ["static", "eager"])
def test_shared_state_changes_once_for_each_call(answer: Any) -> None:
    net = Net().eval()
    alone = copy.deepcopy(net)
    watched = dy2st.shadow(net, dy2st.to_static(net), rate=1.0, answer=answer)
    for x in INPUTS:
        expected, actual = alone(x), watched(x)
        for name, value in expected.items():
            torch.testing.assert_close(actual[name], value)
        assert torch.equal(net.calls, alone.calls)
    assert watched.counts.equal == len(INPUTS), str(watched)
    outcomes.append("Y")


@row(69)
def test_random_numbers_are_those_of_the_answer() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    watched = dy2st.shadow(net, dy2st.to_static(net), rate=1.0)
    plain = dy2st.to_static(copy.deepcopy(net))
    for x in INPUTS:
        torch.manual_seed(5)
        expected = plain(x), torch.rand(2)
        torch.manual_seed(5)
        actual = watched(x), torch.rand(2)
        for want, got in zip(expected, actual, strict=True):
            torch.testing.assert_close(got, want)
    assert watched.counts.equal == len(INPUTS), str(watched)


@row(69)
def test_a_sample_of_the_calls_is_reproducible() -> None:
    def chosen(seed: int | None) -> list[int]:
        found = []
        watched = dy2st.shadow(lambda x: x, lambda x: x + 1, rate=0.2, seed=seed, on_difference=found.append)
        for _ in range(300):
            watched(torch.zeros(1))
        assert watched.counts.calls == 300
        assert watched.counts.compared == len(found) == watched.counts.different
        return [drift.call for drift in found]

    assert chosen(4) == chosen(4) != chosen(5)
    assert 30 < len(chosen(4)) < 95
    for rate, compared in ((0.0, 0), (1.0, 20)):
        watched = dy2st.shadow(stateless, stateless, rate=rate)
        for _ in range(20):
            watched(torch.ones(1))
        assert watched.counts.compared == compared


@row(69)
def test_nothing_but_the_answer_reaches_the_caller(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(x: Tensor) -> Tensor:
        raise RuntimeError("the shadow is broken")

    def complaining(drift: Any) -> None:
        raise RuntimeError("so is the callback")

    class Uncopyable:
        def __deepcopy__(self, memo: Any) -> Any:
            raise RuntimeError("can't be copied")

    x = torch.ones(2)
    watched = dy2st.shadow(broken, stateless, rate=1.0)
    assert torch.equal(watched(x), stateless(x))
    assert watched.counts.failed == 1
    watched = dy2st.shadow(stateless, drifting, rate=1.0, on_difference=complaining)
    assert torch.equal(watched(x * 9), drifting(x * 9))
    assert (watched.counts.different, watched.counts.failed) == (1, 1)
    watched = dy2st.shadow(lambda x, y: x, lambda x, y: x, rate=1.0)
    assert torch.equal(watched(x, Uncopyable()), x)
    assert (watched.counts.compared, watched.counts.failed) == (0, 1)
    watched = dy2st.shadow(lambda x: object(), lambda x: object(), rate=1.0)
    watched(x)
    assert watched.counts.failed == 1
    folder = tmp_path / "gone"
    folder.mkdir()
    watched = dy2st.shadow(stateless, drifting, rate=1.0, save=folder)
    folder.rmdir()
    assert torch.equal(watched(x * 9), drifting(x * 9))
    assert watched.first is not None
    assert watched.first.file is None
    # What the answering side itself raises is the call's own business.
    with pytest.raises(RuntimeError, match="the shadow is broken"):
        dy2st.shadow(stateless, broken, rate=1.0)(x)


@row(69)
def test_an_interrupted_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(value: Any, stream: Any) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    watched = dy2st.shadow(stateless, drifting, rate=1.0, save=tmp_path)
    monkeypatch.setattr(torch, "save", full)
    watched(torch.full((2,), 9.0))
    assert watched.first is not None
    assert watched.first.file is None
    assert not list(tmp_path.iterdir())


@row(69)
def test_raising_on_request(tmp_path: Path) -> None:
    watched = dy2st.shadow(stateless, drifting, rate=1.0, on_difference="raise", save=tmp_path)
    watched(torch.ones(2))
    with pytest.raises(DriftError, match=r"call 2 \(x: f32\[2\]\): output: eager has 18") as caught:
        watched(torch.full((2,), 9.0))
    assert "call_2.pt" in caught.value.hint


@row(69)
def test_threads() -> None:
    net = Net().eval()
    static = dy2st.to_static(copy.deepcopy(net))
    for x in INPUTS:
        static(x)
    watched = dy2st.shadow(copy.deepcopy(net), static, rate=0.5, seed=1)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                for x in INPUTS:
                    torch.testing.assert_close(watched(x)["y"], net(x)["y"])
        except BaseException as error:  # noqa: BLE001 - whatever it is, the main thread has to know
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    counts = watched.counts
    assert counts.calls == 160
    assert 40 < counts.compared < 120
    assert (counts.equal, counts.failed) == (counts.compared, 0), str(watched)


@row(69)
def test_calls_that_are_not_chosen_cost_next_to_nothing() -> None:
    def nothing(x: Tensor) -> Tensor:
        return x

    watched, x = dy2st.shadow(nothing, nothing, rate=0.0), torch.ones(1)

    def seconds(function: Any) -> float:
        begun = time.perf_counter()
        for _ in range(2000):
            function(x)
        return (time.perf_counter() - begun) / 2000

    assert min(seconds(watched) for _ in range(5)) - min(seconds(nothing) for _ in range(5)) < 10e-6


@row(69)
def test_wrong_use(tmp_path: Path) -> None:
    for options in ({"rate": 1.5}, {"rate": -0.1}, {"answer": "both"}, {"on_difference": "shout"}, {"rtol": -1.0}):
        with pytest.raises(UsageError):
            dy2st.shadow(stateless, stateless, **options)
    with pytest.raises(UsageError, match="no folder"):
        dy2st.shadow(stateless, stateless, save=tmp_path / "missing")
    with pytest.raises(UsageError, match="neither a file"):
        dy2st.shadow(stateless, 3)
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"nothing")
    with pytest.raises(OnnxError):
        dy2st.shadow(stateless, bad)
    assert issubclass(DriftError, Dy2stError)


@row(69)
@pytest.mark.parametrize("on_difference", ["log", "raise"])
def test_an_answer_that_raises_is_a_difference_where_the_other_does_not(
    tmp_path: Path, on_difference: Any, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "fixed.onnx"
    dy2st.onnx.export(stateless, (torch.ones(2),), file)
    watched = dy2st.shadow(stateless, file, rate=1.0, save=tmp_path, on_difference=on_difference)
    with caplog.at_level(logging.WARNING, logger="dy2st.shadow"), pytest.raises(Exception, match="Got: 3 Expected: 2"):
        watched(torch.ones(3))
    assert (watched.counts.compared, watched.counts.different, watched.counts.failed) == (1, 1, 0)
    assert watched.first is not None
    assert "the call: the static side raises InvalidArgument" in str(watched.first)
    assert "; eager does not" in str(watched)
    assert len(caplog.records) == (on_difference == "log")
    assert watched.first.file == str(tmp_path / "call_1.pt")
    with pytest.raises(OnnxError):
        watched(None)
    assert (watched.counts.compared, watched.counts.equal) == (2, 1), "both raise"


@row(69)
def test_what_was_saved_before_stays(tmp_path: Path) -> None:
    for number, value in enumerate((7.0, 8.0, 9.0), 1):
        watched = dy2st.shadow(stateless, drifting, rate=1.0, save=tmp_path, on_difference=lambda drift: None)
        watched(torch.tensor([value]))
        assert watched.first is not None
        assert watched.first.file == str(tmp_path / ("call_1.pt" if number == 1 else f"call_1_{number}.pt"))
    assert torch.load(tmp_path / "call_1.pt", weights_only=True)[0][0].item() == 7.0


def structured(x: Tensor) -> dict[str, Any]:
    """Dicts, lists, tuples and None."""
    y = x * 2 if x.sum() > 0 else x - 1
    return {"y": y, "parts": [y + 1, (y.sum(),)], "mask": None}


def nested(x: Tensor) -> list[Tensor]:
    """A list of one."""
    return [x * 2 if x.sum() > 0 else x - 1]


class Recurrent(nn.Module):
    """State, and a dict as its result."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.zeros(3))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        self.h = self.h + x if x.sum() > 0 else self.h * 0.5
        return {"h": self.h, "twice": 2 * self.h}


@row(69)
@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize("model", [structured, nested, Recurrent()], ids=["function", "list", "state"])
def test_a_file_answers_in_the_structure_of_eager(model: Any, rate: float, tmp_path: Path) -> None:
    """Also where no call is compared; and eager's state is the caller's."""
    file = tmp_path / "model.onnx"
    model = copy.deepcopy(model)
    dy2st.onnx.export(copy.deepcopy(model), (torch.ones(3),), file)
    both = dy2st.shadow(copy.deepcopy(model), file, rate=rate, on_difference="raise")
    for sign in (1.0, -1.0, 1.0):
        x = sign * torch.ones(3)
        expected, answer = model(x), both(x)
        assert pytree.tree_structure(answer) == pytree.tree_structure(expected)
        for one, other in zip(pytree.tree_leaves(answer), pytree.tree_leaves(expected), strict=True):
            assert one is None if other is None else torch.allclose(one, other)
    assert both.counts.equal == 3 * rate
    assert both.counts.failed == 0


@row(69)
def test_eager_that_fails_leaves_the_outputs_in_their_order(tmp_path: Path) -> None:
    """What it returns is not known then; that it fails is counted."""

    def broken(x: Tensor) -> dict[str, Tensor]:
        raise RuntimeError(str(x.shape))

    file = tmp_path / "model.onnx"
    dy2st.onnx.export(structured, (torch.ones(3),), file)
    both = dy2st.shadow(broken, file, rate=0)
    assert [each.shape for each in both(torch.ones(3))] == [(3,), (3,), ()]
