"""``convert`` and ``check`` from end to end: what they write, print and return."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]

MODEL = """
import torch

def model(x):
    if x.sum() > 0:
        return x * 2
    return -x

def example_inputs():
    print("making inputs")
    return {"up": (torch.ones(3),), "down": (-torch.ones(5),)}

calls = 0

def unsteady(x):
    # What is not converted can't be seen to count.
    found = count()
    return x * found

class Big(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(700, 700))

    def forward(self, x):
        if x.sum() > 0:
            return x @ self.weight
        return x

def rejects(x):
    return x.reshape(3)

import dy2st

class Calls:
    number = 0

@dy2st.not_to_static
def count():
    Calls.number += 1
    return Calls.number
"""


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


@pytest.fixture(autouse=True)
def _model(write):
    write("net.py", MODEL)


def test_convert(dy2st_command, folder):
    done = dy2st_command("convert", "net.py", "-o", "net.onnx")
    assert (done.code, done.err) == (0, "making inputs\n")
    *table, paths, line, summary, wrote, _, _ = done.out.splitlines()
    assert [line.split()[0] for line in table] == ["input", "-----", "up", "down"]
    assert (paths, line.split()) == ("paths of net.py", "5 if x.sum() > 0 then, else".split())
    assert summary == "equal to eager on all 2 inputs"
    assert wrote.startswith("wrote net.onnx, ")
    assert wrote.endswith("with 1 If)")
    assert files(folder) == ["net.onnx", "net.py"]
    session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    for value in (np.ones(7, np.float32), -np.ones(2, np.float32)):
        (actual,) = session.run(None, {"x": value})
        np.testing.assert_allclose(actual, value * 2 if value[0] > 0 else -value)


def test_default_output_and_no_check(dy2st_command, folder):
    done = dy2st_command("convert", "net.py", "--no-check")
    assert done.code == 0
    assert done.out.startswith("wrote net.onnx, ")
    assert [line.partition(":")[0] for line in done.out.splitlines()[1:]] == ["  inputs", "  outputs"]
    assert files(folder) == ["net.onnx", "net.py"]


def test_json(dy2st_command):
    done = dy2st_command("convert", "net.py", "--json", "--opset", "21")
    found = json.loads(done.out)
    assert (found["outcome"], found["exit_code"], found["opset"]) == ("equal", 0, 21)
    assert found["onnx_file"] == "net.onnx"
    assert found["bytes"] == Path("net.onnx").stat().st_size
    assert found["graph"]["If"] == 1
    assert [each["name"] for each in found["inputs"]] == ["up", "down"]
    found = json.loads(dy2st_command("convert", "net.py", "--json", "--no-check").out)
    assert (found["outcome"], found["exit_code"], found["inputs"]) == ("unchecked", 0, [])


def test_a_file_that_differs_is_not_left_behind(dy2st_command, folder, snapshot):
    (folder / "net.onnx").write_text("older")
    done = dy2st_command("convert", "net.py:unsteady", "-o", "net.onnx", "--input", "x=f32[3]:1..1")
    assert done.code == 1
    assert (folder / "net.onnx").read_text() == "older"
    assert files(folder) == ["net.onnx", "net.py"]
    snapshot("differs", f"{done.out}---\n{done.err}")


def test_keep(dy2st_command, folder):
    done = dy2st_command("convert", "net.py:unsteady", "-o", "net.onnx", "--input", "x=f32[3]:1..1", "--keep")
    assert done.code == 1
    assert done.err.endswith("; the file is kept\n")
    assert files(folder) == ["net.onnx", "net.py"]
    onnx.load("net.onnx")


def test_tolerance_from_the_command_line_and_the_settings(dy2st_command, write):
    arguments = ["check", "net.py:unsteady", "--input", "x=f32[3]:1..1"]
    assert dy2st_command(*arguments).code == 1
    assert dy2st_command(*arguments, "--atol", "100").code == 0
    write("pyproject.toml", "[tool.dy2st]\natol = 100\n")
    assert dy2st_command(*arguments).code == 0
    assert dy2st_command(*arguments, "--atol", "0").code == 1


def test_specs_make_inputs_of_several_sizes(dy2st_command):
    done = dy2st_command("convert", "net.py", "--input", "x=f32[batch,3]", "--json")
    assert done.code == 0, done.err
    shapes = {each["description"] for each in json.loads(done.out)["inputs"]}
    assert shapes == {f"x: f32[{size}, 3]" for size in (4, 6, 3, 2)}
    (value,) = onnx.load("net.onnx").graph.input
    dims = value.type.tensor_type.shape.dim
    assert (value.name, dims[0].dim_param, dims[1].dim_value) == ("x", "batch", 3)


def test_inputs_from_a_file(dy2st_command, folder):
    np.savez(folder / "in.npz", x=np.ones(4, np.float32))
    done = dy2st_command("check", "net.py", "--inputs", "in.npz")
    assert done.code == 1
    assert "net.py:5: if x.sum() > 0: its else-arm never ran" in done.out
    done = dy2st_command("check", "net.py", "--inputs", "in.npz", "--allow-uncovered")
    assert done.code == 0
    assert "x: f32[4]" in done.out


def test_an_input_that_eager_rejects_spoils_the_check(dy2st_command, folder):
    torch.save([(torch.ones(3),), (torch.ones(4),)], folder / "in.pt")
    done = dy2st_command("convert", "net.py:rejects", "--inputs", "in.pt")
    assert done.code == 2
    assert "input 1 (x: f32[4]): eager itself raises RuntimeError" in done.err
    assert files(folder) == ["in.pt", "net.py"]


def test_check_leaves_no_file(dy2st_command, folder):
    done = dy2st_command("check", "net.py")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "equal to eager on all 2 inputs"
    assert files(folder) == ["net.py"]


@pytest.mark.usefixtures("in_this_process")
def test_check_of_several_goes_on_after_a_failure(dy2st_command, write):
    write("models/a.py", "from net import model, example_inputs\n")
    write("models/b.py", "from net import unsteady as model\nimport torch\nexample_inputs = [(torch.ones(1),)] * 2\n")
    write("models/c.py", "model = 3\nexample_inputs = []\n")
    done = dy2st_command("check", "models", "net.py:missing")
    assert done.code == 2
    first, second, *bad, last = done.out.splitlines()
    assert bad == [f"{target}: could not be checked: D2S902" for target in ("models/c.py", "net.py:missing")]
    assert first.startswith("models/a.py: equal to eager on all 2 inputs (opset")
    assert second.startswith("models/b.py: differs: equal to eager on ")
    assert last == "1 of 4 targets are equal to eager; 1 differs; 2 could not be checked"
    assert "dy2st: models/c.py: D2S902: " in done.err
    assert "dy2st: net.py:missing: D2S902: " in done.err
    assert dy2st_command("check", "models/a.py", "models/b.py").code == 1
    found = json.loads(dy2st_command("check", "models", "--json").out)
    assert [each["outcome"] for each in found["targets"]] == ["equal", "differs", "error"]
    assert found["exit_code"] == 2


@pytest.mark.usefixtures("in_this_process")
def test_check_of_several_counts_what_is_not_covered(dy2st_command, write):
    write("models/a.py", "from net import model, example_inputs\n")
    write("models/b.py", "from net import model\nimport torch\nexample_inputs = [(torch.ones(1),)] * 2\n")
    done = dy2st_command("check", "models")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "2 of 2 targets are equal to eager; 1 not covered"
    assert dy2st_command("check", "models", "--allow-uncovered").code == 0


def test_targets_of_the_settings(dy2st_command, write):
    write("pyproject.toml", "[tool.dy2st]\ntargets = ['net.py']\n")
    assert dy2st_command("check").code == 0


def test_code(dy2st_command):
    whole = dy2st_command("code", "net.py").out
    assert whole.startswith("def model(x):\n")
    assert "d2s.if_(" in whole
    part = dy2st_command("code", "net.py", "--after", "LowerReturn").out
    assert "d2s.if_(" not in part
    diff = dy2st_command("code", "net.py", "--diff").out.splitlines()
    assert "-    if x.sum() > 0:" in diff
    assert "+++ rewritten" in diff
    assert json.loads(dy2st_command("code", "net.py", "--json").out)["source"] == whole


def start(*arguments, **options):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "dy2st", *arguments]
    return subprocess.Popen(command, env=environment, text=True, stdout=-1, stderr=-1, **options)


@pytest.mark.slow
def test_disk_full(folder):
    """A limit on the size of files stands for a full disk: the write fails halfway, deep inside the exporter."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    arguments = ["convert", "net.py:Big", "-o", "big.onnx", "--input", "x=f32[n,700]", "--no-check"]
    process = start(*arguments, preexec_fn=limit)
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert err == "dy2st: D2S402: big.onnx can't be written: File too large\n"
    assert files(folder) == ["net.py"]


def test_external_data_is_moved_along(dy2st_command, folder, monkeypatch):
    monkeypatch.setattr("dy2st.onnx.exporting.is_large", lambda program: True)
    done = dy2st_command("convert", "net.py:Big", "-o", "out.onnx", "--input", "x=f32[n,700]", "--atol", "0.01")
    assert done.code == 0, done.err
    assert files(folder) == ["net.py", "out.onnx", "out.onnx.data"]
    session = onnxruntime.InferenceSession("out.onnx", providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.ones((2, 700), np.float32)})[0].shape == (2, 700)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_command_leaves_nothing(folder, write, number):
    write("slow.py", MODEL + "\ndef example_inputs():\n    open('ready', 'w')\n    import time\n    time.sleep(60)\n")
    process = start("convert", "slow.py", "-o", "slow.onnx")
    while not (folder / "ready").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
    assert files(folder) == ["net.py", "ready", "slow.py"]
