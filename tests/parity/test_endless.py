"""A wrong file that runs for ever is a finding at its line, and no search for a line has no end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor

from dy2st.parity import stage_runs
from dy2st.parity.budget import Budget, OverBudgetError
from dy2st.parity.checking import compare_stages, eager_references, export_for
from dy2st.parity.eager_localising import converted_culprit
from dy2st.parity.isolated import IsolatedSession
from dy2st.parity.localising import Localiser
from dy2st.parity.stages import EndlessRunError, OnnxSession

LINE = 26


def grown(x: Tensor) -> Tensor:
    while x.sum() < 60:
        x = x * 1.5 + 1  # what the wrong file takes away, so that it never gets there
    return x


def sunk(x: Tensor) -> Tensor:
    while x.sum() < -60:
        x = x * 1.5 + 1
    return x + 1


def wrong_file(model: Any, file: Path) -> tuple[Any, Any]:
    """A file whose loop goes on for ever: it subtracts where the model adds, or asks for less than infinity."""
    references = eager_references(model, [(torch.ones(3),), (torch.full((3,), 2.0),)])
    program = export_for(model, references, file)
    made = onnx.load(str(file))
    (loop,) = [node for node in made.graph.node if node.op_type == "Loop"]
    if model is sunk:
        loop.input[1] = ""  # it begins whatever the condition says
    for node in loop.attribute[0].g.node:
        if node.op_type == ("Add" if model is grown else "Less") and "full" not in node.input[0]:
            node.op_type = "Sub" if model is grown else "Greater"
            break
    onnx.save(made, str(file))
    return references, program


@pytest.mark.parametrize("make", [IsolatedSession, OnnxSession])
def test_a_file_that_runs_for_ever_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    monkeypatch.setattr(stage_runs, "LEAST_LIMIT", 0.5)
    monkeypatch.setattr(stage_runs, "TIMES_EAGER", 0.0)
    references, program = wrong_file(grown, tmp_path / "m.onnx")
    report = compare_stages(grown, references, program=program, onnx_file=tmp_path / "m.onnx", make=make)
    assert [each.outcome for each in report.inputs] == ["differs", "differs"]
    failed, begins, *_ = report.problems()
    assert "onnxruntime failed: onnxruntime was not done in 0.5 s; eager took " in failed
    assert f"it begins at {__file__}:{LINE}: x: eager 2.5 vs onnxruntime 0.5 at [0] (trip 1 of loop)" in begins


def test_the_process_is_replaced(tmp_path: Path) -> None:
    wrong_file(grown, tmp_path / "m.onnx")
    export_for(grown, eager_references(grown, [(torch.ones(3),)]), tmp_path / "right.onnx")
    right, wrong = IsolatedSession(tmp_path / "right.onnx"), IsolatedSession(tmp_path / "m.onnx")
    wrong.limit = 0.2
    with pytest.raises(EndlessRunError, match=r"onnxruntime was not done in 0.2 s"):
        wrong.outputs({"x": torch.ones(3)})
    (output,) = right.outputs({"x": torch.ones(3)})
    assert torch.equal(output.tensor, grown(torch.ones(3)))


def test_a_loop_that_the_program_does_not_enter(tmp_path: Path) -> None:
    references, program = wrong_file(sunk, tmp_path / "m.onnx")
    localiser = Localiser(sunk, program, tmp_path / "m.onnx")
    localiser.first(references[0].inputs)  # it ends


@pytest.mark.parametrize("budget", [Budget(seconds=-1.0), Budget(numbers=3)])
def test_a_search_is_given_up(tmp_path: Path, budget: Budget) -> None:
    references, program = wrong_file(grown, tmp_path / "m.onnx")
    localiser = Localiser(grown, program, tmp_path / "m.onnx")
    with pytest.raises(OverBudgetError):
        localiser.first(references[0].inputs, budget=budget)


def test_a_search_along_the_lines_is_given_up() -> None:
    (reference,) = eager_references(grown, [(torch.ones(3),)])
    with pytest.raises(OverBudgetError, match="it was not found within -1 s"):
        converted_culprit(grown, reference.inputs, Budget(seconds=-1.0))


def test_what_was_given_up_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_runs, "Budget", lambda: Budget(seconds=-1.0))
    references, program = wrong_file(grown, tmp_path / "m.onnx")
    monkeypatch.setattr(stage_runs, "LEAST_LIMIT", 0.2)
    report = compare_stages(grown, references, program=program, onnx_file=tmp_path / "m.onnx", make=IsolatedSession)
    assert "; the search for the line where it begins was given up: it was not found within -1 s" in str(report)
