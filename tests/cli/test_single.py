"""``dy2st check`` of one target: it has a process that shares the terminal, whose end is the verdict."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODELS = """\
import ctypes
import os
import sys
import warnings

import torch

def model(x):
    print("printed", os.getppid() == int(os.environ["STARTED_BY"]))
    return x * 2

def crashes(x):
    ctypes.string_at(0)
    return x

def ends(x):
    os._exit(7)

def leaves(x):
    sys.exit(0)

def stuck(x):
    ctypes.PyDLL(None).sleep(600)
    return x

def interrupted(x):
    os.kill(os.getppid(), 2)
    sleep = __import__("time").sleep
    sleep(600)
    return x

def stops(x):
    breakpoint()
    return x + 1

example_inputs = [(torch.ones(3),)]
"""
EQUAL = "equal to eager on the one input\n"


@pytest.fixture
def checked(folder, write):
    """A function that runs ``dy2st check net.py:NAME ARGUMENT …`` in a process of its own."""
    write("net.py", MODELS)

    def run(name, *arguments, given="", **more):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "STARTED_BY": str(os.getpid()), **more}
        command = [sys.executable, "-m", "dy2st", "check", f"net.py:{name}", *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, input=given, capture_output=True, text=True, check=False
        )

    return run


forked = pytest.mark.skipif(sys.platform != "linux", reason="nothing is forked")
pytestmark = [pytest.mark.slow, forked]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("crashes", "net.py:13: D2S505: the process that checked net.py:crashes was killed by SIGSEGV while it was"),
        ("ends", "D2S505: the process that checked net.py:ends ended with exit code 7 while it was running eagerly"),
        ("leaves", "net.py:20: D2S505: the target's own code ends the process: SystemExit(0)"),
    ],
)
def test_its_end_is_the_verdict(checked, name, said):
    done = checked(name)
    assert done.returncode == 1
    assert done.stderr.startswith(f"dy2st: {said}")
    assert "Fatal Python error" not in done.stderr
    assert done.stdout == ""


def test_formats_have_it(checked):
    done = checked("crashes", "--json", "--traceback")
    assert done.returncode == 1
    (target,) = json.loads(done.stdout)["targets"]
    assert (target["outcome"], target["error"]["code"], target["error"]["line"]) == ("error", "D2S505", 13)
    assert "Fatal Python error: Segmentation fault" in done.stderr


def test_a_call_that_can_not_be_stopped(checked):
    done = checked("stuck", "--timeout", "0.1")
    assert done.returncode == 1
    assert "D2S504: it was not done in 0.1 s, and was running eagerly" in done.stderr


def test_results_are_kept(checked):
    first, again = checked("model"), checked("model")
    assert (first.returncode, again.returncode) == (0, 0)
    assert first.stdout.endswith(EQUAL)
    assert "printed False" in first.stderr
    assert again.stdout == f"cached: nothing has changed since this was found (--no-cache checks anew)\n{first.stdout}"


def test_an_interrupt(checked):
    done = checked("interrupted")
    assert done.returncode == 130
    assert done.stderr == "dy2st: interrupted\n"


def test_a_breakpoint_has_the_terminal(checked):
    done = checked("stops", "--no-cache", given="p x.sum().item() + 39\nc\n" + "c\n" * 20)
    assert done.returncode == 0, done.stderr
    assert "42.0" in done.stdout + done.stderr


def test_under_a_debugger_there_is_one_process(checked, folder):
    (folder / "sitecustomize.py").write_text("import sys; sys.settrace(lambda *_: None)\n")
    done = checked("model", PYTHONPATH=f"{ROOT}{os.pathsep}{folder}")
    assert done.returncode == 0, done.stderr
    assert "printed True" in done.stderr
    done = checked("leaves", PYTHONPATH=f"{ROOT}{os.pathsep}{folder}")
    assert done.returncode == 1
    assert "net.py:20: D2S505: the target's own code ends the process: SystemExit(0)" in done.stderr
    assert checked("crashes", PYTHONPATH=f"{ROOT}{os.pathsep}{folder}").returncode == -signal.SIGSEGV
