"""``dy2st check --reproducer``: a defect is put into a translation, and the script that is written shows it."""

from __future__ import annotations

import contextlib
import importlib
import io
import runpy
import sys

import pytest
import torch

from dy2st.cli.main import main
from dy2st.onnx.translations.control_flow import TRANSLATIONS
from dy2st.reproducer import reproduce

ATAN = torch.ops.aten.atan.default

HELPERS = """
import torch
from torch import nn

class Shift(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.shift = nn.Parameter(torch.rand(n))

    def forward(self, x):
        return x + self.shift
"""
NET = """
import torch
from torch import nn
import helpers

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = helpers.Shift(2)

    def forward(self, x):
        y = self.shift(x)
        while y.sum() > 9:
            y = y / 2
        return {"y": y, "z": torch.atan(y)}

def model():
    return Net()

example_inputs = [(torch.ones(2, 2),), (torch.ones(3, 2) * 9,)]
"""


@pytest.fixture
def wrong(monkeypatch):
    """Exported files compute half of what atan is."""
    from onnxscript import opset18 as op

    def half(x):
        return op.Mul(op.Atan(x), op.CastLike(0.5, x))

    monkeypatch.setitem(TRANSLATIONS, ATAN, half)


@pytest.fixture
def folder(forgotten, monkeypatch):
    monkeypatch.chdir(forgotten)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (forgotten / "helpers.py").write_text(HELPERS)
    (forgotten / "net.py").write_text(NET)
    return forgotten


def run(script):
    """The exit code of a script, and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(script), run_name="__main__")
    return stopped.value.code, out.getvalue()


@pytest.mark.slow
def test_a_defect_becomes_a_small_script(folder, wrong, monkeypatch, capsys):
    (folder / "out.py").write_text("# Exits with 1 while it does, else with 0.")  # an older one
    assert main(["check", "net.py", "--reproducer", "out.py", "--timeout", "300"]) == 1
    assert "wrote out.py: " in capsys.readouterr().out
    (folder / "helpers.py").unlink()
    text = (folder / "out.py").read_text()
    assert "torch.atan(" in text
    assert "helpers" not in text.rpartition('"""')[2]
    assert "while" not in text.rpartition('"""')[2]
    assert len(text.rpartition('"""')[2].strip().splitlines()) < 30
    code, printed = run("out.py")
    assert code == 1
    assert "onnxruntime: output: eager has " in printed
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert run("out.py")[0] == 0
    assert sorted(path.name for path in folder.glob("*.py")) == ["net.py", "out.py"]


@pytest.mark.slow
def test_without_trials_the_script_is_whole(folder, wrong, monkeypatch):
    """No time to make it smaller: the weights, the sizes and all statements are those of the model."""
    (folder / "net.py").write_text(NET.replace("Shift(2)", "Shift(500)").replace(", 2)", ", 500)"))
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("net")
    done = reproduce(folder / "whole.py", module, "model", module.model(), module.example_inputs, trials=0)
    assert done.saved
    assert done.trials == 0
    assert run("whole.py")[0] == 1
    assert torch.load(folder / "whole.pt", weights_only=True).keys() == {"state_shift.shift"}


def test_no_mismatch_no_file(folder, capsys):
    assert main(["check", "net.py", "--reproducer", "out.py", "--allow-uncovered"]) == 0
    assert "there is no mismatch: out.py is not written\n" in capsys.readouterr().out
    assert not (folder / "out.py").exists()


def test_what_can_not_be_put_into_one_file_is_said(folder, wrong, capsys):
    (folder / "net.py").write_text(NET.replace("y = self", "import helpers as inside\n        y = self"))
    assert main(["check", "net.py", "--reproducer", "out.py"]) == 1
    assert "out.py is not written: " in capsys.readouterr().out
    assert not (folder / "out.py").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["net.py", "helpers.py", "--reproducer", "out.py"], "--reproducer is for one target, and there are 2"),
        (["net.py", "--reproducer", "out.txt"], "--reproducer out.txt is no Python file"),
        (["net.py", "--reproducer", "net.py"], "net.py exists and is no reproducer: it is not overwritten"),
        (["net.py", "--reproducer", "no/out.py"], "the folder no does not exist"),
        (["net.py", "--reproducer", "out.py", "--allow-specialize", "3"], "exclude each other"),
    ],
    ids=str,
)
def test_wrong_use(folder, capsys, arguments, problem):
    assert main(["check", *arguments]) == 2
    assert problem in capsys.readouterr().err
    assert (folder / "net.py").read_text() == NET
