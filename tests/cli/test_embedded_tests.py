"""``dy2st convert --embed-tests`` and ``dy2st check FILE.onnx``: the proof travels with the file."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from dy2st.errors import EmbeddedTestsError
from dy2st.report.as_json import SCHEMA_FILE

ROOT = Path(__file__).resolve().parents[2]

NET = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([0.5, 2.0]))

    def forward(self, x):
        if x.sum() < 0:
            raise ValueError("a negative sum")
        y = x * self.scale
        while y.sum() < 5:
            y = y + 1
        return {"y": y, "empty": y[2:]}

model = Net
example_inputs = {
    "one": (torch.tensor([3.0, 1.0]),),
    "many": (torch.tensor([0.0, 0.0]),),
    "none": (torch.tensor([3.0, 9.0]),),
    "negative": (torch.tensor([-1.0, 0.0]),),
}

def half(x):
    return x + 1 if x.sum() > 0 else x - 1

def large(x):
    return x * 2

def drawn(x):
    return x + torch.rand(3)
"""


@pytest.fixture
def net(dy2st_command, write):
    """A file with its tests beside it."""
    write("net.py", NET)
    done = dy2st_command("convert", "net.py", "-o", "net.onnx", "--embed-tests")
    assert done.code == 0, done.err
    return done


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


def without_versions(text):
    """The output with no numbers of versions and sizes."""
    text = re.sub(r"(dy2st|python|torch|onnx|onnxruntime) \d[\w.+]*", r"\1 N", text)
    text = re.sub(r" on \w+ \w+$", " on SYSTEM MACHINE", text, flags=re.MULTILINE)
    return re.sub(r"[\d.]+ k?B", "SIZE", text)


def scaled(file, factor):
    model = onnx.load(str(file))
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and list(tensor.dims) == [2]:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), tensor.name))
    onnx.save(model, str(file))


def test_convert_writes_both(net, folder, snapshot):
    assert names(folder) == ["net.onnx", "net.onnx.tests.safetensors", "net.py"]
    snapshot("embedded_written", without_versions(net.out))


def test_check_without_the_source(net, dy2st_command, folder, snapshot):
    (folder / "net.py").unlink()
    done = dy2st_command("check", "net.onnx", "--allow-uncovered")
    assert (done.code, done.err) == (0, "")
    snapshot("embedded_equal", without_versions(done.out))


def test_what_was_not_covered_counts_as_elsewhere(dy2st_command, write):
    write("net.py", NET)
    dy2st_command("convert", "net.py:half", "-o", "half.onnx", "--embed-tests", "--input", "x=f32[3]:1..2")
    done = dy2st_command("check", "half.onnx")
    assert done.code == 1
    assert "not covered: net.py:25: return x + 1 if x.sum() > 0 else x - 1: its else-arm never ran" in done.out
    assert dy2st_command("check", "half.onnx", "--allow-uncovered").code == 0


def test_what_a_search_has_found_is_beside_the_file(dy2st_command, write):
    write("net.py", NET)
    given = ["--embed-tests", "--input", "x=f32[3]:-9..9", "--seed", "3"]
    assert dy2st_command("convert", "net.py:half", "-o", "half.onnx", *given, "--search", "2").code == 0
    done = dy2st_command("check", "half.onnx")
    assert done.code == 0, done.out
    assert "    25  return x + 1 if x.sum() > 0 else x - 1  then, else\n" in done.out
    assert re.search(r"^net_25_\w+_near_\w+ ", done.out, re.MULTILINE)
    assert 20 < len(re.findall(r"^more_", done.out, re.MULTILINE)) <= 45
    model = onnx.load("half.onnx")
    limit = next(each for each in model.graph.node if each.op_type == "Greater")
    limit.op_type = "GreaterOrEqual"
    onnx.save(model, "half.onnx")
    done = dy2st_command("check", "half.onnx")
    assert done.code == 1
    assert re.search(r"input more_\d+ .*differs|more_\d+ .*eager has", done.out)


def test_another_weight(net, dy2st_command, snapshot):
    scaled("net.onnx", 3)
    done = dy2st_command("check", "net.onnx")
    assert done.code == 1
    snapshot("embedded_differs", without_versions(f"{done.out}--\n{done.err}"))


def test_another_weight_that_makes_no_difference(net, dy2st_command):
    scaled("net.onnx", 1 + 1e-6)
    done = dy2st_command("check", "net.onnx", "--allow-uncovered")
    assert done.code == 0
    assert "changed: its weights are not those with which the tests were recorded\n" in done.out
    assert done.err == ""  # once is enough


def test_given_bounds_take_the_place_of_the_recorded_ones(net, dy2st_command):
    scaled("net.onnx", 1.001)
    assert dy2st_command("check", "net.onnx", "--allow-uncovered").code == 1
    assert dy2st_command("check", "net.onnx", "--allow-uncovered", "--rtol", "y=0.1").code == 0


def test_moved_and_renamed(net, dy2st_command, folder):
    (folder / "there").mkdir()
    Path("net.onnx").rename("there/other.onnx")
    Path("net.onnx.tests.safetensors").rename("there/other.onnx.tests.safetensors")
    done = dy2st_command("check", "there/other.onnx", "--allow-uncovered")
    assert (done.code, done.err) == (0, "")
    assert "changed" not in done.out


CASES = {
    "embedded_no_file": (lambda: Path("net.onnx").unlink(), ["check", "net.onnx"]),
    "embedded_no_tests": (lambda: Path("net.onnx.tests.safetensors").unlink(), ["check", "net.onnx"]),
    "embedded_damaged": (lambda: os.truncate("net.onnx.tests.safetensors", 2000), ["check", "net.onnx"]),
    "embedded_foreign": (lambda: Path("net.onnx.tests.safetensors").write_text("{}"), ["check", "net.onnx"]),
    "embedded_no_onnx": (lambda: Path("net.onnx").write_text("no model"), ["check", "net.onnx"]),
    "embedded_with_a_model": (lambda: None, ["check", "net.onnx", "net.py"]),
    "embedded_with_inputs": (lambda: None, ["check", "net.onnx", "--input", "x=f32[2]"]),
    "embedded_no_provider": (lambda: None, ["check", "net.onnx", "--providers", "moon"]),
    "embedded_without_check": (lambda: None, ["convert", "net.py", "--embed-tests", "--no-check"]),
    "search_without_check": (lambda: None, ["convert", "net.py", "--search", "--no-check"]),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_use_is_one_line(net, dy2st_command, snapshot, name):
    prepare, arguments = CASES[name]
    prepare()
    done = dy2st_command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    snapshot(name, re.sub(r"(DecodeError|InvalidProtobuf): .*", r"\1: …", done.err))


def test_a_newer_version_is_refused(net, dy2st_command):
    path = Path("net.onnx.tests.safetensors")
    path.write_bytes(path.read_bytes().replace(b'"version":"1"', b'"version":"7"'))
    done = dy2st_command("check", "net.onnx")
    assert done.code == 2
    assert done.err.startswith(
        f"dy2st: {EmbeddedTestsError.code}: net.onnx.tests.safetensors can't be read: it is of ver"
    )


def test_several_files(net, dy2st_command):
    for suffix in ("", ".tests.safetensors"):
        Path(f"copy.onnx{suffix}").write_bytes(Path(f"net.onnx{suffix}").read_bytes())
    Path("lone.onnx").write_bytes(Path("net.onnx").read_bytes())
    done = dy2st_command("check", "net.onnx", "lone.onnx", "copy.onnx", "--allow-uncovered")
    assert done.code == 2
    lines = done.out.splitlines()
    assert lines[0].startswith("net.onnx: equal to eager on all 4 inputs (opset 20, ")
    assert "lone.onnx: could not be checked: D2S912" in lines
    assert lines[-1] == "2 of 3 targets are equal to eager; 1 could not be checked"
    assert done.err.startswith("dy2st: lone.onnx: D2S912: lone.onnx has no tests")


def test_formats(net, dy2st_command):
    jsonschema = pytest.importorskip("jsonschema", reason="it is not installed: dy2st[dev]")
    files = [f"{name}=out.{name}" for name in ("junit", "sarif", "markdown", "html")]
    scaled("net.onnx", 3)
    done = dy2st_command("check", "net.onnx", "--json", *(each for file in files for each in ("--format", file)))
    found = json.loads(done.out)
    jsonschema.validate(found, json.loads(SCHEMA_FILE.read_text()))
    (target,) = found["targets"]
    assert (found["exit_code"], target["outcome"]) == (1, "differs")
    assert target["changed"] == ["its weights are not those with which the tests were recorded"]
    assert set(target["recorded"]) == {"dy2st", "python", "torch", "onnx", "onnxruntime", "platform"}
    for name in ("junit", "sarif", "markdown", "html"):
        assert "its weights are not those with which the tests were recorded" in Path(f"out.{name}").read_text()


def test_formats_where_the_tests_are_missing(net, dy2st_command):
    Path("net.onnx.tests.safetensors").unlink()
    done = dy2st_command("check", "net.onnx", "--json")
    assert json.loads(done.out)["error"]["code"] == "D2S912"
    assert json.loads(done.out)["exit_code"] == done.code == 2


def test_a_file_that_differs_and_is_kept_has_tests_that_fail(dy2st_command, write, folder):
    write("net.py", NET)
    arguments = ["convert", "net.py:drawn", "-o", "drawn.onnx", "--input", "x=f32[3]", "--embed-tests"]
    assert dy2st_command(*arguments).code == 1
    assert names(folder) == ["net.py"]
    assert dy2st_command(*arguments, "--keep").code == 1
    assert names(folder) == ["drawn.onnx", "drawn.onnx.tests.safetensors", "net.py"]
    assert dy2st_command("check", "drawn.onnx").code == 1


def start(*arguments, **options):
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | options.pop("environment", {})
    command = [sys.executable, "-m", "dy2st", *arguments]
    return subprocess.Popen(command, env=environment, text=True, stdout=-1, stderr=-1, **options)


def test_no_library_of_the_model_is_imported(net, folder):
    """With modules in place of torch and others that fail where they are imported."""
    stubs = folder / "stubs"
    stubs.mkdir()
    for name in ("torch", "libcst", "onnxscript", "onnx_ir", "rich", "sympy"):
        (stubs / f"{name}.py").write_text(f"raise ImportError('{name} is not to be imported')\n")
    environment = {"PYTHONPATH": f"{stubs}{os.pathsep}{ROOT}"}
    process = start("check", "net.onnx", "--allow-uncovered", environment=environment)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "equal to eager on all 4 inputs"


def test_it_takes_no_time(net):
    """Importing torch alone takes several times as long."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        start("check", "net.onnx").communicate(timeout=60)
        times.append(time.perf_counter() - begun)
    assert min(times) < 2.5


def test_a_crash_is_a_finding(net, folder):
    """onnxruntime's process is another one."""
    stubs = folder / "stubs"
    stubs.mkdir()
    (stubs / "onnxruntime.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    process = start("check", "net.onnx", environment={"PYTHONPATH": f"{stubs}{os.pathsep}{ROOT}"})
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "D2S505: the process that checked net.onnx was killed by SIGSEGV" in err


@pytest.mark.slow
def test_disk_full(write, folder):
    """A limit on the size of files stands for a full disk: the file fits, its tests do not."""
    write("net.py", NET)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    arguments = ["convert", "net.py:large", "-o", "large.onnx", "--input", "x=f32[100000]"]
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}  # our own compiled modules are not what has to fit
    process = start(*arguments, "--embed-tests", environment=environment, preexec_fn=limit)
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert err == "dy2st: D2S402: large.onnx can't be written: File too large\n"
    assert names(folder) == ["net.py"]
    process = start(*arguments, environment=environment, preexec_fn=limit)
    process.communicate()
    assert process.returncode == 0
