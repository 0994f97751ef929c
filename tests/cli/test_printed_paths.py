"""Files are named from the working folder where they lie below it, in all that is printed."""

from __future__ import annotations

import warnings

import pytest

from dy2st.cli.console import progress
from dy2st.errors.places import from_here

NET = """
import torch

def model(x):
    if x.sum() > 0:
        x = x * 2
    return x

def example_inputs():
    return [(torch.ones(3),), (torch.ones(2),)]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{here}/a.py:3: and {here}/b/c.py", "a.py:3: and b/c.py"),
        ("({here}/a.py)", "(a.py)"),
        ("{here}", "{here}"),
        ("{here}er/a.py", "{here}er/a.py"),
        ("/mnt{here}/a.py", "/mnt{here}/a.py"),
        ("a.py", "a.py"),
    ],
)
def test_from_here(text, expected, folder):
    assert from_here(text.format(here=folder)) == expected.format(here=folder)


def test_from_the_root(monkeypatch):
    monkeypatch.chdir("/")
    assert from_here("/a/b.py and /c") == "/a/b.py and /c"


def test_from_a_folder_that_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert from_here(f"{tmp_path}/a.py") == f"{tmp_path}/a.py"


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("command", ["check", "convert"])
def test_all_of_a_report(command, absolute, write, folder, dy2st_command):
    file = write("models/net.py", NET)
    done = dy2st_command(command, file if absolute else "models/net.py")
    assert "<tmp>" not in done.out + done.err
    assert "not covered: models/net.py:5: if x.sum() > 0" in done.out
    assert "paths of models/net.py" in done.out
    assert done.err == ""


def test_warnings(folder):
    with progress("net.py", enabled=False):
        text = warnings.formatwarning("look", UserWarning, f"{folder}/net.py", 3, "x = 1")
    assert text == "net.py:3: UserWarning: look\n  x = 1\n"
    assert warnings.formatwarning("look", UserWarning, f"{folder}/net.py", 3, "x").startswith(str(folder))


def test_a_file_beside_the_working_folder_is_named_in_full(write, folder, dy2st_command, monkeypatch):
    write("models/net.py", NET)
    (folder / "other").mkdir()
    monkeypatch.chdir("other")
    done = dy2st_command("check", "../models/net.py")
    assert "not covered: <tmp>/models/net.py:5: " in done.out


def test_a_difference_is_told_once(write, dy2st_command):
    write("net.py", NET)
    write("other.py", NET.replace("x * 2", "x * 3"))
    assert dy2st_command("convert", "other.py", "-o", "other.onnx").code == 0
    done = dy2st_command("check", "net.py", "--onnx", "other.onnx")
    assert done.code == 1
    assert done.out.count("output: eager has 2 at [0], this 3 (3 of 3") == 1
    assert done.err == ""
