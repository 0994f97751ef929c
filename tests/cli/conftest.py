"""Running commands in this process."""

from __future__ import annotations

import sys
from typing import NamedTuple

import pytest
import torch  # noqa: F401 - a process that has loaded it does not fork for a target: what that writes can be read here


class Done(NamedTuple):
    """What a command did: its exit code and what it printed, the temporary folder written as <tmp>."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(forgotten, monkeypatch, tmp_path_factory):
    """An empty working folder; what is imported from it is forgotten afterwards. Results are kept elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(forgotten)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return forgotten


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
def write(folder):
    """A function that writes a file into the folder, parents included."""

    def make(name, text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return make
