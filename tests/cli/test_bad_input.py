"""Bad input of every kind: one clear line, the documented exit code, no traceback and no file left behind.

The full texts are kept as files in snapshots/.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.linear = torch.nn.Linear(width, 2)

    def forward(self, x, scale=1.0):
        return self.linear(x) * scale

class Wide(torch.nn.Module):
    def __init__(self, width):
        super().__init__()

class Broken(torch.nn.Module):
    def __init__(self):
        raise RuntimeError("no weights here")

def number():
    return 3

def plain(x):
    if x.sum() > 0:
        return x
    return -x

def nothing(x):
    return None

def not_a_number(x):
    return x * float("nan")

model = Net()
text = "hello"
"""

# name -> (files, arguments); NET is the module above
CASES = {
    "no_such_file": ({}, ["check", "missing.py:model"]),
    "no_such_module": ({}, ["check", "missing.module:model"]),
    "no_such_path": ({}, ["check", "some/where:model"]),
    "no_such_name": ({"net.py": MODEL}, ["check", "net.py:modle"]),
    "empty_name": ({"net.py": MODEL}, ["check", "net.py:"]),
    "folder_as_target": ({"models/net.py": MODEL}, ["convert", "models"]),
    "folder_without_models": ({"models/net.py": MODEL}, ["check", "models"]),
    "syntax_error": ({"net.py": "def model(x):\n    return x +\n"}, ["check", "net.py"]),
    "null_byte": ({"net.py": "x = 1\0\n"}, ["check", "net.py"]),
    "import_error": ({"net.py": "import torch\nimport not_installed_here\n"}, ["check", "net.py"]),
    "import_error_deeper": (
        {"net.py": "from helper import go\ngo()\n", "helper.py": "def go():\n    return 1 / 0\n"},
        ["check", "net.py"],
    ),
    "exits_on_import": ({"net.py": "import sys\nsys.exit('no GPU')\n"}, ["check", "net.py"]),
    "broken_module": ({"pkg/__init__.py": "", "pkg/net.py": "raise ValueError('bad\\nthing')"}, ["check", "pkg.net"]),
    "no_model": ({"net.py": MODEL}, ["check", "net.py:text"]),
    "class_with_arguments": ({"net.py": MODEL}, ["check", "net.py:Wide"]),
    "class_that_raises": ({"net.py": MODEL}, ["check", "net.py:Broken"]),
    "factory_of_no_model": ({"net.py": MODEL}, ["check", "net.py:number"]),
    "no_example_inputs": ({"net.py": MODEL}, ["check", "net.py"]),
    "example_inputs_raise": ({"net.py": MODEL + "def example_inputs():\n    return [x]\n"}, ["check", "net.py"]),
    "example_inputs_are_a_tensor": ({"net.py": MODEL + "example_inputs = torch.ones(3)\n"}, ["check", "net.py"]),
    "example_inputs_are_tensors": ({"net.py": MODEL + "example_inputs = [torch.ones(3)]\n"}, ["check", "net.py"]),
    "example_inputs_are_empty": ({"net.py": MODEL + "example_inputs = []\n"}, ["check", "net.py"]),
    "inputs_differ_in_structure": (
        {"net.py": MODEL + "example_inputs = [(torch.ones(3, 4),), (torch.ones(3, 4), 2.0)]\n"},
        ["check", "net.py"],
    ),
    "inputs_differ_in_dtype": (
        {"net.py": MODEL + "example_inputs = [(torch.ones(3),), (torch.ones(3).double(),)]\n"},
        ["check", "net.py:plain"],
    ),
    "spec_does_not_parse": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[batch,"]),
    "spec_dtype": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=float[3,4]"]),
    "spec_name": ({"net.py": MODEL}, ["check", "net.py", "--input", "y=f32[3,4]"]),
    "spec_missing_argument": ({"net.py": MODEL}, ["check", "net.py", "--input", "scale=f32[]"]),
    "spec_twice": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[3,4]", "--input", "x=f32[3,4]"]),
    "spec_range": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[n:5..2,4]"]),
    "spec_and_file": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[3,4]", "--inputs", "a.npz"]),
    "shape_that_the_model_rejects": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[3,5]"]),
    "dtype_that_the_model_rejects": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=i64[3,4]"]),
    "missing_input_file": ({"net.py": MODEL}, ["check", "net.py", "--inputs", "a.npz"]),
    "unknown_input_file": ({"net.py": MODEL, "a.csv": "1,2"}, ["check", "net.py", "--inputs", "a.csv"]),
    "damaged_npz": ({"net.py": MODEL, "a.npz": "PK\x03\x04 no zip"}, ["check", "net.py", "--inputs", "a.npz"]),
    "damaged_pt": ({"net.py": MODEL, "a.pt": "no torch file"}, ["check", "net.py", "--inputs", "a.pt"]),
    "damaged_safetensors": ({"net.py": MODEL, "a.safetensors": "x"}, ["check", "net.py", "--inputs", "a.safetensors"]),
    "input_function_missing": ({"net.py": MODEL}, ["check", "net.py", "--inputs", "net.py:some"]),
    "nothing_to_compare": ({"net.py": MODEL}, ["check", "net.py:nothing", "--input", "x=f32[3]"]),
    "only_nan": ({"net.py": MODEL}, ["check", "net.py:not_a_number", "--input", "x=f32[3]"]),
    "no_folder": ({"net.py": MODEL}, ["convert", "net.py", "-o", "no/such/folder/net.onnx"]),
    "output_is_a_folder": ({"net.py": MODEL, "out/x": ""}, ["convert", "net.py", "-o", "out"]),
    "output_is_a_device": ({"net.py": MODEL}, ["convert", "net.py", "-o", "/dev/full"]),
    "output_is_another_file": ({"net.py": MODEL}, ["convert", "net.py", "-o", "net.py"]),
    "output_is_empty": ({"net.py": MODEL}, ["convert", "net.py", "-o", ""]),
    "empty_target": ({}, ["check", ""]),
    "negative_tolerance": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[3,4]", "--rtol", "-1"]),
    "tolerance_is_nan": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[3,4]", "--atol", "nan"]),
    "opset_too_low": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[3,4]", "--opset", "9"]),
    "opset_too_high": ({"net.py": MODEL}, ["check", "net.py", "--input", "x=f32[3,4]", "--opset", "999"]),
    "shapes_of_another_argument": (
        {"net.py": MODEL + "example_inputs = [(torch.ones(3, 4),)]\ndynamic_shapes = {'y': {0: None}}\n"},
        ["check", "net.py"],
    ),
    "shapes_of_another_rank": (
        {"net.py": MODEL + "example_inputs = [(torch.ones(3, 4),)]\ndynamic_shapes = ({5: None},)\n"},
        ["check", "net.py"],
    ),
    "shapes_of_another_number": (
        {"net.py": MODEL + "example_inputs = [(torch.ones(3, 4),)]\ndynamic_shapes = [None, None]\n"},
        ["check", "net.py"],
    ),
    "shapes_of_another_type": (
        {"net.py": MODEL + "example_inputs = [(torch.ones(3, 4),)]\ndynamic_shapes = 3\n"},
        ["check", "net.py"],
    ),
    "settings_do_not_parse": ({"net.py": MODEL, "pyproject.toml": "[tool.dy2st\n"}, ["check", "net.py"]),
    "settings_unknown_key": ({"net.py": MODEL, "pyproject.toml": "[tool.dy2st]\nopsett = 18\n"}, ["check", "net.py"]),
    "settings_wrong_type": ({"net.py": MODEL, "pyproject.toml": "[tool.dy2st]\nopset = '18'\n"}, ["check", "net.py"]),
    "nothing_to_check": ({}, ["check"]),
    "unknown_command": ({}, ["transmogrify"]),
    "unknown_option": ({}, ["check", "net.py", "--fast"]),
    "option_with_a_slip": ({}, ["check", "net.py", "--serch=3"]),
    "opset_is_no_number": ({}, ["check", "net.py", "--opset", "new"]),
    "unknown_code": ({}, ["explain", "D2S999"]),
    "code_of_a_builtin": ({"net.py": "from math import sqrt as model\n"}, ["code", "net.py"]),
    "code_without_source": ({"net.py": "model = eval('lambda x: x')\n"}, ["code", "net.py"]),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, write, dy2st_command, snapshot, folder):
    files, arguments = CASES[name]
    for file, text in files.items():
        write(file, text)
    before = sorted(folder.rglob("*"))
    done = dy2st_command(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.startswith("dy2st: ")
    left = [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts]
    assert left == before
    snapshot(name, done.err)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("code_")])
def test_bad_input_takes_one_line(name, write, dy2st_command):
    """Errors in the source of a function also show its line; all others are one line (or one for each input)."""
    files, arguments = CASES[name]
    for file, text in files.items():
        write(file, text)
    lines = dy2st_command(*arguments).err.splitlines()
    assert all(line.startswith("dy2st: ") for line in lines)


def test_traceback_on_request(write, dy2st_command):
    write("net.py", "import not_installed_here\n")
    done = dy2st_command("check", "net.py", "--traceback")
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("dy2st: ")


def test_error_as_json(write, dy2st_command):
    import json

    write("net.py", "x = 1\nimport not_installed_here\n")
    done = dy2st_command("convert", "net.py", "--json")
    error = json.loads(done.out)
    assert error["exit_code"] == done.code == 2
    assert error["error"]["code"] == "D2S902"
    assert (error["error"]["file"], error["error"]["line"]) == ("net.py", 2)


def test_what_the_users_file_prints_does_not_mix_with_results(write, dy2st_command):
    write("net.py", "print('loading')\nmodel = 3\n")
    done = dy2st_command("check", "net.py")
    assert done.out == ""
    assert done.err.startswith("loading\n")


def test_folder_that_can_not_be_written(write, dy2st_command, monkeypatch):
    """Root may write anywhere, so the refusal is the system call's, made up here."""
    write("net.py", MODEL)

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    done = dy2st_command("convert", "net.py", "-o", "net.onnx")
    assert done.code == 2
    assert done.err == "dy2st: D2S402: net.onnx: the folder . can't be written: Permission denied\n"


def test_unknown_pass(write, dy2st_command):
    write("net.py", MODEL)
    done = dy2st_command("code", "net.py", "--after", "LowerEverything")
    assert done.code == 2
    assert done.err.startswith("dy2st: D2S901: there is no pass 'LowerEverything' (instead: one of LowerAssert, ")


def test_interrupt(write, dy2st_command):
    write("net.py", "raise KeyboardInterrupt\n")
    done = dy2st_command("check", "net.py")
    assert (done.code, done.err) == (130, "dy2st: interrupted\n")


def test_defect_has_a_code_of_its_own(dy2st_command, monkeypatch):
    monkeypatch.setattr("dy2st.errors.explain", lambda code: 1 // 0)
    done = dy2st_command("explain", "D2S201")
    assert done.code == 3
    assert done.err.startswith("dy2st: internal error: ZeroDivisionError: ")


def test_reader_that_goes_away():
    root = Path(__file__).resolve().parents[2]
    script = f"{sys.executable} -m dy2st explain D2S201 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
