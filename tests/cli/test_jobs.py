"""``dy2st check`` of several targets: in processes of their own, whatever these do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = """\
import torch

def model(x):
    if x.sum() > 0:
        return x * {factor}
    return -x

example_inputs = [(torch.ones(3),), (-torch.ones(3),)]
"""
BAD = """\
import ctypes
import os
import sys
import time

import torch

weight = torch.randn(3)

def crashes(x):
    ctypes.string_at(0)
    return x

def ends(x):
    os._exit(7)

def leaves(x):
    sys.exit(0)

def killed(x):
    os.kill(os.getpid(), 9)

def hangs(x):
    while True:
        time.sleep(60)

def refused(x):
    return torch.from_numpy(x.numpy())

def drawn(x):
    print("drawn")
    return x * weight * 1.0001

example_inputs = [(torch.ones(3),)]
"""


def without_times(text):
    """A report as JSON without how long things took."""
    return re.sub(r'"seconds": [\d.]+', '"seconds": 0', text)


@pytest.fixture
def started(folder):
    """A function that starts ``dy2st ARGUMENT …`` in a process; all that it starts is ended with the test."""
    processes = []

    def start(*arguments):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", "dy2st", *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_the_number_of_processes_makes_no_difference(write, dy2st_command):
    for number in range(3):
        write(f"models/net{number}.py", GOOD.format(factor=number + 1))
    write("bad.py", BAD)
    names = ["models", "bad.py:drawn", "bad.py:refused", "bad.py:missing", "bad.py:ends"]
    found = []
    for count in (1, 2):
        done = dy2st_command("check", *names, "--jobs", count, "--no-cache", "--format=json=report.json")
        found.append((done, without_times(Path("report.json").read_text())))
    assert found[0] == found[1]
    outcomes = [each["outcome"] for each in json.loads(found[0][1])["targets"]]
    assert outcomes == ["equal", "equal", "equal", "equal", "error", "error", "error"]


@pytest.mark.slow
def test_a_process_that_dies_is_the_verdict_of_its_target(write, dy2st_command):
    write("bad.py", BAD)
    write("good.py", GOOD.format(factor=2))
    names = ["crashes", "ends", "leaves", "killed"]
    done = dy2st_command("check", *(f"bad.py:{name}" for name in names), "good.py", "--jobs", "2")
    assert done.code == 1
    assert done.out.splitlines() == [
        *(f"bad.py:{name}: could not be checked: D2S505" for name in names),
        "good.py: equal to eager on all 2 inputs (opset 20, 5 nodes, with 1 If)",
        "1 of 5 targets are equal to eager; 4 could not be checked",
    ]
    lines = [line for line in done.err.splitlines() if line.startswith("dy2st: ")]
    said = "the process that checked it {} while it was running eagerly"
    hint = " (instead: fewer --jobs, if the memory was not enough)"
    assert lines == [
        f"dy2st: bad.py:crashes: bad.py:11: D2S505: {said.format('was killed by SIGSEGV')}",
        f"dy2st: bad.py:ends: D2S505: {said.format('ended with exit code 7')}",
        f"dy2st: bad.py:leaves: D2S505: {said.format('ended with exit code 0')}",
        f"dy2st: bad.py:killed: D2S505: {said.format('was killed by SIGKILL')}{hint}",
    ]


@pytest.mark.slow
def test_a_target_that_takes_too_long(write, dy2st_command, monkeypatch):
    """The process itself knows the line; one that can't stop itself is ended from outside."""
    write(
        "bad.py",
        BAD + "\nimport signal\n\ndef deaf(x):\n    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    hangs(x)\n",
    )
    monkeypatch.setattr("dy2st.sweep.pool.GRACE", 0.5)
    done = dy2st_command("check", "bad.py:hangs", "bad.py:deaf", "--jobs", "2", "--timeout", "2")
    assert done.code == 1
    assert "bad.py:hangs: bad.py:25: D2S504: it was not done in 2 s, and was running eagerly" in done.err
    assert "bad.py:deaf: D2S504: it was not done in 2 s, and was running eagerly" in done.err


@pytest.mark.slow
def test_what_targets_print_stands_before_their_results(write, dy2st_command):
    write("a.py", "print('loading a')\n" + GOOD.format(factor=2))
    write("b.py", "print('loading b')\nraise ValueError\n")
    done = dy2st_command("check", "b.py", "a.py", "--jobs", "2")
    assert done.err.splitlines() == [
        "loading b",
        "dy2st: b.py: b.py:2: D2S902: b.py can't be imported: ValueError",
        "loading a",
    ]


@pytest.mark.slow
def test_targets_do_not_see_one_another(write, dy2st_command):
    """Neither modules of the same name, nor the working folder, the environment or torch's settings."""
    for name, value in (("a", 1), ("b", 2)):
        write(f"{name}/parts.py", f"value = {value}\n")
        write(
            f"{name}/net.py",
            "import os, random, sys, torch\nimport numpy as np\nfrom parts import value\n"
            f"assert value == {value} and 'mine' not in os.environ and sys.argv == ['dy2st']\n"
            "assert torch.get_default_dtype() is torch.float32 and os.path.exists('a')\n"
            "drawn = random.random(), float(np.random.rand()), float(torch.rand(()))\n"
            "open(os.path.join(os.path.dirname(__file__), 'drawn'), 'w').write(str(drawn))\n"
            "os.environ['mine'] = ''; torch.set_default_dtype(torch.float64); os.chdir('a')\n"
            "def model(x):\n    return x + value\nexample_inputs = [(torch.ones(2),)]\n",
        )
    done = dy2st_command("check", "a", "b", "a/net.py", "b/net.py:model", "--jobs", "1")
    left_out = "dy2st: a: left out (no model): parts.py\ndy2st: b: left out (no model): parts.py\n"
    assert (done.code, done.err) == (0, left_out)
    assert Path("a/drawn").read_text() == Path("b/drawn").read_text()


@pytest.mark.slow
def test_what_cannot_be_put_back_is_done_again_in_a_new_process(write, dy2st_command):
    write("a.py", "import torch\ntorch.mine = 1\n" + GOOD.format(factor=2))
    write("b.py", "import torch\nassert not hasattr(torch, 'mine')\n" + GOOD.format(factor=2))
    done = dy2st_command("check", "a.py", "b.py", "--jobs", "1")
    assert (done.code, done.err) == (0, "")


@pytest.mark.slow
def test_this_process_imports_no_torch(write):
    write("a.py", GOOD.format(factor=2))
    write("b.py", BAD)
    code = (
        "import sys; from dy2st.cli.main import main;"
        "main(['check', 'a.py', 'b.py:refused', '--jobs', '2', '--format=json=report.json', '--format=html=a.html']);"
        "print(sorted({'torch', 'numpy', 'onnx', 'onnxruntime', 'libcst'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path.cwd(), env=environment
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert "d2s.if_(" in Path("a.html").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes where Linux lists them")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt(write, folder, started, number):
    write("a.py", GOOD.format(factor=2))
    write("b.py", "from pathlib import Path\nPath('reached').touch()\n" + BAD)
    process = started("check", "a.py", "b.py:hangs", "a.py:other", "--jobs", "1", "--format=json=report.json")
    first = process.stdout.readline()  # of the target that is done
    while not Path("reached").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    children = list(alive_children(process.pid))
    assert children
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=30)
    assert first.startswith("a.py: equal to eager on all 2 inputs")
    assert "Traceback" not in err
    gone = time.monotonic() + 10
    while any(Path(f"/proc/{each}").exists() for each in children) and time.monotonic() < gone:
        time.sleep(0.05)
    assert not [each for each in children if Path(f"/proc/{each}").exists()]
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert out == "1 of 3 targets are equal to eager; interrupted: 2 not checked\n"
        assert err == "dy2st: interrupted\n"
        report = json.loads((folder / "report.json").read_text())
        assert (report["exit_code"], report["interrupted"], len(report["targets"])) == (130, 2, 1)
    else:
        assert process.returncode == 143


def alive_children(pid):
    """The processes that a process has started."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                yield int(entry.name)


@pytest.mark.parametrize("count", ["0", "-1", "two"])
def test_a_wrong_number(dy2st_command, write, count):
    write("a.py", GOOD.format(factor=2))
    done = dy2st_command("check", "a.py", f"--jobs={count}")
    assert done.code == 2
    assert f"argument --jobs: '{count}' is no whole number from 1 up" in done.err
