"""``--state``, sequences of calls in ``example_inputs``, and files that carry state or don't."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("in_this_process")

MODEL = """\
import torch

class Holding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.zeros(()))
        self.held = 0

    def forward(self, x):
        self.level = 0.5 * self.level + 0.5 * x.mean()
        if self.level > 2:
            self.held = 2
            return x
        if self.held > 0:
            self.held -= 1
            return x / 2
        return x * 0

model = Holding()

def example_inputs():
    loud, quiet = torch.full((3,), 9.0), torch.zeros(3)
    return {"word": [(loud,), *[(quiet,)] * 5]}
"""


@pytest.fixture(autouse=True)
def _model(write):
    write("holding.py", MODEL)


def names(done):
    (target,) = json.loads(done.out)["targets"]
    return [each["name"] for each in target["inputs"]]


def test_calls_of_a_sequence(dy2st_command):
    done = dy2st_command("check", "holding.py", "--json")
    assert done.code == 0, done.err
    assert names(done) == [f"word, call {i} of 6" for i in range(1, 7)]


def test_a_file_and_its_tests(dy2st_command, folder):
    assert dy2st_command("convert", "holding.py", "-o", "holding.onnx", "--embed-tests").code == 0
    assert dy2st_command("check", "holding.onnx").code == 0
    assert dy2st_command("check", "holding.py", "--onnx", "holding.onnx").code == 0
    assert (folder / "holding.onnx.tests.safetensors").exists()


def test_a_file_that_forgets(dy2st_command):
    with pytest.warns(match="it forgets level, Holding.held"):
        done = dy2st_command("convert", "holding.py", "-o", "holding.onnx", "--state", "forget", "--no-check")
    assert done.code == 0
    done = dy2st_command("check", "holding.py", "--onnx", "holding.onnx")
    assert done.code == 2
    assert "starts afresh in each call, and the model does not" in done.err
    done = dy2st_command("check", "holding.py", "--onnx", "holding.onnx", "--state", "forget", "--allow-uncovered")
    assert done.code == 0, done.err


def test_refuse_is_a_setting(dy2st_command, write):
    write("pyproject.toml", '[tool.dy2st]\nstate = "refuse"\n')
    done = dy2st_command("check", "holding.py")
    assert done.code == 2
    assert "D2S261" in done.err
    assert "is changed in each call and read in the next" in done.err
    assert dy2st_command("check", "holding.py", "--state", "io").code == 0


def test_a_setting_that_is_none(dy2st_command, write):
    write("pyproject.toml", '[tool.dy2st]\nstate = "keep"\n')
    done = dy2st_command("check", "holding.py")
    assert done.code == 2
    assert "io, forget or refuse" in done.err


@pytest.mark.slow
def test_a_search_for_sequences(dy2st_command):
    done = dy2st_command("check", "holding.py", "--input", "x=f32[3]", "--search=10", "--json")
    assert done.code == 0, done.err + done.out
    assert any(name.endswith("call 3 of 3") for name in names(done))
