"""Running commands in this process, and comparing what they print with files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

SNAPSHOTS = Path(__file__).parent / "snapshots"


class Done(NamedTuple):
    """What a command did: its exit code and what it printed, the temporary folder written as <tmp>."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path, monkeypatch, tmp_path_factory):
    """An empty working folder; what is imported from it is forgotten afterwards. Results are kept elsewhere."""
    before = set(sys.modules)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


@pytest.fixture
def dy2st_command(folder, capsys):
    """A function that runs ``dy2st ARGUMENT …`` in the folder."""
    from dy2st.cli.main import main

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Done(code, out.replace(str(folder), "<tmp>"), err.replace(str(folder), "<tmp>"))

    return run


@pytest.fixture
def snapshot():
    """A function that compares a text with a file of the given name; UPDATE_SNAPSHOTS=1 writes the file instead."""

    def compare(name, text):
        file = SNAPSHOTS / f"{name}.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            file.write_text(text)
        assert text == file.read_text()

    return compare


@pytest.fixture
def write(folder):
    """A function that writes a file into the folder, parents included."""

    def make(name, text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return make
