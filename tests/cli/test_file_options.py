"""``--optional-outputs``, ``--inputs-as`` and ``--random-inputs``, and their settings."""

from __future__ import annotations

import json

import onnxruntime
import pytest

pytestmark = pytest.mark.usefixtures("in_this_process")

MODEL = """\
import torch

def model(x, steps: int):
    for _ in range(steps):
        x = x / 2
    return {"x": x + 0, "peak": x.max() if x.sum() > 0 else None}

def example_inputs():
    return [(torch.ones(3), 2), (-torch.ones(3), 0), (torch.ones(3), 1)]
"""


@pytest.fixture(autouse=True)
def _model(write):
    write("halved.py", MODEL)


def interface(folder, name="halved.onnx"):
    session = onnxruntime.InferenceSession(folder / name)
    return [each.name for each in session.get_inputs()], [f"{each.name}: {each.type}" for each in session.get_outputs()]


def test_options(dy2st_command, folder):
    given = ("--inputs-as", "steps=tensor", "--optional-outputs", "flag")
    done = dy2st_command("convert", "halved.py", *given, "--embed-tests")
    assert done.code == 0, done.err
    assert interface(folder) == (
        ["x", "steps"],
        ["x_out: tensor(float)", "peak: tensor(float)", "peak_present: tensor(bool)"],
    )
    assert dy2st_command("check", "halved.onnx").code == 0
    assert dy2st_command("check", "halved.py", "--onnx", "halved.onnx", "--inputs-as", "steps=tensor").code == 0


def test_settings(dy2st_command, write, folder):
    write("pyproject.toml", '[tool.dy2st]\ninputs_as = {steps = "tensor"}\noptional_outputs = "optional"\n')
    assert dy2st_command("convert", "halved.py").code == 0
    assert interface(folder)[1] == ["x_out: tensor(float)", "peak: optional(tensor(float))"]
    done = dy2st_command("check", "halved.py", "--json")
    (target,) = json.loads(done.out)["targets"]
    assert {each["status"] for found in target["inputs"] for each in found["stages"]} == {"equal"}


def test_random_inputs(dy2st_command, write, folder):
    write("noisy.py", MODEL.replace("x + 0", "x + torch.rand(3)"))
    done = dy2st_command("convert", "noisy.py", "--random-inputs", "--inputs-as", "steps=tensor", "--embed-tests")
    assert done.code == 0, done.err
    assert interface(folder, "noisy.onnx")[0] == ["x", "steps", "random_0"]
    assert dy2st_command("check", "noisy.onnx").code == 0
    assert dy2st_command("check", "noisy.py", "--inputs-as", "steps=tensor").code == 1


def test_wrong_values(dy2st_command, write):
    assert dy2st_command("check", "halved.py", "--inputs-as", "steps").code == 2
    assert "no argument 'stops'" in dy2st_command("check", "halved.py", "--inputs-as", "stops=tensor").err
    write("pyproject.toml", '[tool.dy2st]\noptional_outputs = "zeros"\n')
    assert "optional or flag" in dy2st_command("check", "halved.py").err
