"""A folder as a target: what is in it, and what is left out, and why."""

from __future__ import annotations

import json

import pytest

NET = """
import torch

def model(x):
    if x.sum() > 0:
        x = x * 2
    return x

def example_inputs():
    return [(torch.ones(3),), (-torch.ones(2),)]
"""
WITHOUT_INPUTS = NET.partition("def example_inputs")[0]

LEFT_OUT = """\
dy2st: models: left out (does not parse: '(' was never closed): broken.py
dy2st: models: left out (no example_inputs): half.py
dy2st: models: left out (no model): helper.py, sub/other.py
"""

pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture
def models(write, folder):
    write("models/good.py", NET)
    write("models/sub/better.py", NET)
    write("models/broken.py", "model = example_inputs = (\n")
    write("models/half.py", WITHOUT_INPUTS)
    write("models/helper.py", "def helper(x):\n    return x\n")
    write("models/sub/other.py", "example_inputs = []\n")
    write("models/sub/_private.py", "x = 1\n")
    write("models/sub/__init__.py", "")
    return folder


def test_check_says_what_is_left_out(models, dy2st_command):
    done = dy2st_command("check", "models")
    assert done.code == 0
    assert done.err == LEFT_OUT
    assert [line.partition(":")[0] for line in done.out.splitlines()[:2]] == ["models/good.py", "models/sub/better.py"]


def test_results_for_programs_hold_results_alone(models, dy2st_command):
    done = dy2st_command("check", "models", "--json")
    assert [each["model"] for each in json.loads(done.out)["targets"]] == ["models/good.py", "models/sub/better.py"]
    assert done.err == LEFT_OUT


@pytest.mark.parametrize("command", ["check", "convert"])
def test_strict(command, models, dy2st_command):
    done = dy2st_command(command, "models", "--strict")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(
        "dy2st: D2S902: models: left out (does not parse: '(' was never closed): broken.py; models: "
    )
    assert line.endswith("(instead: without --strict they are left out)")
    assert not list(models.glob("*.onnx"))


def test_strict_accepts_a_folder_of_models(write, dy2st_command):
    write("models/good.py", NET)
    assert dy2st_command("check", "models", "--strict").code == 0


def test_inputs_may_come_from_elsewhere(models, dy2st_command, write):
    """From an option, or from the settings of one of them."""
    done = dy2st_command("check", "models", "--input", "x=f32[n]", "--allow-uncovered")
    assert "models/half.py: equal" in done.out
    assert "half.py" not in done.err
    write("pyproject.toml", '[[tool.dy2st.target]]\ntarget = "models/half.py"\ninput = "x=f32[n]"\n')
    done = dy2st_command("check", "models", "--allow-uncovered")
    assert "models/half.py: equal" in done.out
    assert "half.py" not in done.err


def test_an_import_that_fails_is_an_error(models, dy2st_command, write):
    write("models/late.py", NET + "import not_installed_here\n")
    done = dy2st_command("check", "models")
    assert done.code == 2
    assert "dy2st: models/late.py: models/late.py:11: D2S902: models/late.py can't be imported: " in done.err
    assert done.out.splitlines()[-1] == "2 of 3 targets are equal to eager; 1 could not be checked"


def test_convert_writes_a_file_for_each(models, dy2st_command):
    (models / "out").mkdir()
    done = dy2st_command("convert", "models", "-o", "out")
    assert done.code == 0
    assert done.err == LEFT_OUT
    assert sorted(each.name for each in (models / "out").iterdir()) == ["better.onnx", "good.onnx"]
    first, wrote, *_ = done.out.splitlines()
    assert first == "models/good.py: equal to eager on all 2 inputs"
    assert wrote.startswith("  wrote out/good.onnx, ")


def test_convert_goes_on_after_a_failure(models, dy2st_command, write):
    write("models/a.py", NET + "raise ValueError('no')\n")
    done = dy2st_command("convert", "models")
    assert done.code == 2
    assert "dy2st: models/a.py: models/a.py:11: D2S902: models/a.py can't be imported: ValueError: no" in done.err
    assert sorted(each.name for each in models.glob("*.onnx")) == ["better.onnx", "good.onnx"]


def test_convert_of_two_of_one_name(models, dy2st_command, write):
    write("models/sub/good.py", NET)
    done = dy2st_command("convert", "models")
    assert done.code == 2
    assert "models/good.py and models/sub/good.py would both be written to good.onnx" in done.err
    assert not list(models.glob("*.onnx"))


def test_convert_needs_a_folder_for_a_folder(models, dy2st_command):
    done = dy2st_command("convert", "models", "-o", "out.onnx")
    assert (done.code, done.err) == (
        2,
        "dy2st: D2S402: out.onnx: there is no such folder, for the files of models (instead: make it first)\n",
    )
