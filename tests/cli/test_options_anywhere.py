"""The command line without a command, and options that all commands have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_command_the_help_is_shown(dy2st_command):
    done = dy2st_command()
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: dy2st ")
    assert "check " in done.err


def test_without_a_command_in_a_process():
    done = subprocess.run(
        [sys.executable, "-m", "dy2st"], capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--traceback", "explain", "D2S1"), ("explain", "--traceback", "D2S1"), ("explain", "D2S1", "--traceback")],
)
def test_traceback_stands_anywhere(arguments, dy2st_command):
    done = dy2st_command(*arguments)
    assert done.code == 2
    assert done.err.startswith("Traceback ")
    assert "perhaps" not in done.err


@pytest.mark.parametrize("arguments", [("--json", "explain", "D2S101"), ("explain", "--json", "D2S101")])
def test_json_stands_anywhere(arguments, dy2st_command):
    done = dy2st_command(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith('{"code": "D2S101"')


def test_a_warning_that_is_an_error_is_no_defect(write, dy2st_command):
    """pytest makes errors of warnings, as ``python -W error`` does."""
    write(
        "net.py",
        "import torch\n\ndef model(x):\n    total = 0\n    if x.sum() > 0:\n"
        "        total = total + x.sum()\n    return total\n",
    )
    done = dy2st_command("check", "net.py", "--input", "x=f32[n]")
    assert (done.code, done.out) == (2, "")
    assert "dy2st: DtypeWarning: the model returns a float32[] tensor or an int, depending on the path" in done.err
    assert "internal error" not in done.err
