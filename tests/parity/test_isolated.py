"""onnxruntime in a process of its own: the same outputs, and a crash, a bad file or a failing run is a finding."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st
import dy2st.onnx
from dy2st.errors import OnnxError
from dy2st.parity.checking import compare_stages, eager_references
from dy2st.parity.isolated import CrashError, IsolatedSession
from dy2st.parity.stages import OnnxSession


def model(x: Tensor) -> tuple[Tensor, Tensor]:
    if x.sum() > 0:
        return x * 2, x > 1
    return -x, x > 1


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("isolated") / "model.onnx"
    dy2st.onnx.export(model, (torch.ones(3),), path)
    return path


def test_the_same_outputs(file: Path) -> None:
    inside, outside = OnnxSession(file), IsolatedSession(file, level="ORT_DISABLE_ALL")
    assert (inside.input_names, inside.output_names) == (outside.input_names, outside.output_names)
    for given in (torch.ones(3), -torch.ones(3)):
        for want, got in zip(inside.outputs({"x": given}), outside.outputs({"x": given}), strict=True):
            assert (want.name, want.tensor.dtype) == (got.name, got.tensor.dtype)
            assert torch.equal(want.tensor, got.tensor)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64, torch.bool, torch.int8])
def test_every_dtype_travels(tmp_path: Path, dtype: torch.dtype) -> None:
    given = torch.tensor([1, 0, 1]).to(dtype)
    dy2st.onnx.export(lambda x: x.clone(), (given,), tmp_path / "copy.onnx")
    (output,) = IsolatedSession(tmp_path / "copy.onnx").outputs({"x": given})
    wanted = torch.view_as_real(given) if given.is_complex() else given
    assert output.tensor.dtype == wanted.dtype
    assert torch.equal(output.tensor, wanted)


def test_a_crash_is_a_finding(file: Path) -> None:
    made: list[IsolatedSession] = []

    def dying(*arguments: Any, **options: Any) -> IsolatedSession:
        made.append(IsolatedSession(*arguments, **options))
        if len(made) == 1:
            child = made[0]._process._process
            os.kill(child.pid, signal.SIGSEGV)
            child.stdout.peek()  # type: ignore[union-attr]  # until it is dead
            child.poll = lambda: None  # type: ignore[method-assign]  # and nobody has noticed
        return made[-1]

    references = eager_references(model, [(torch.ones(3),), (-torch.ones(3),)])
    report = compare_stages(model, references, onnx_file=file, make=dying)
    first = report.inputs[0].stages[0]
    assert first.status == "error"
    assert first.message.startswith("onnxruntime") or "optimiser" in first.message
    assert report.outcome == "differs"


def test_after_a_crash_it_starts_anew(file: Path) -> None:
    session = IsolatedSession(file)
    other = IsolatedSession(file)
    os.kill(session._process._process.pid, signal.SIGSEGV)
    with pytest.raises(CrashError, match=r"onnxruntime crashed \(SIGSEGV\)"):
        session._process.asked("run", session._key, {})
    assert len(session.outputs({"x": torch.ones(3)})) == 2
    assert len(other.outputs({"x": torch.ones(3)})) == 2


def test_sessions_share_a_process_and_do_not_mix(file: Path, tmp_path: Path) -> None:
    dy2st.onnx.export(lambda x: x * 7, (torch.ones(3),), tmp_path / "seven.onnx")
    one, seven = IsolatedSession(file), IsolatedSession(tmp_path / "seven.onnx")
    process, key = one._process, seven._key
    assert process is seven._process
    assert seven.outputs({"x": torch.ones(3)})[0].tensor.tolist() == [7, 7, 7]
    assert len(one.outputs({"x": torch.ones(3)})) == 2
    del seven
    assert len(one.outputs({"x": torch.ones(3)})) == 2  # with it the other is dropped
    with pytest.raises(Exception, match=f"KeyError: {key}"):
        process.asked("run", key, {})


def test_a_path_is_relative_to_the_folder_that_it_is_named_in(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    IsolatedSession(file)
    monkeypatch.chdir(file.parent)
    assert len(IsolatedSession(file.name).outputs({"x": torch.ones(3)})) == 2


def test_an_answer_that_nobody_waits_for_is_not_the_next_ones(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an interrupt, or when the time is up."""
    session = IsolatedSession(file)
    first = session._process

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("dy2st.parity.isolated.pickle.load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.outputs({"x": torch.ones(3)})
    assert not first.is_alive()
    assert len(session.outputs({"x": torch.ones(3)})) == 2


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(OnnxError, match="onnxruntime can't load the file: "):
        IsolatedSession(tmp_path / "bad.onnx")


def test_a_run_that_fails(file: Path) -> None:
    with pytest.raises(Exception, match="Unexpected input data type"):
        IsolatedSession(file).outputs({"x": torch.ones(3, dtype=torch.int64)})


def test_what_the_child_prints_is_no_answer(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = IsolatedSession(file)
    assert session.outputs({"x": torch.ones(3)})
    assert capfd.readouterr().out == ""
