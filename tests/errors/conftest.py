"""A folder to run examples in, and files to compare texts with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # the tests import ``examples`` whatever pytest's import mode is
SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder on the path; what is imported from it is forgotten afterwards."""
    before, dtype = set(sys.modules), torch.get_default_dtype()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    torch.set_default_dtype(dtype)
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


@pytest.fixture
def snapshot():
    """A function that compares a text with a file of the given name; UPDATE_SNAPSHOTS=1 writes the file instead."""

    def compare(name, text):
        file = SNAPSHOTS / f"{name}.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            file.write_text(text)
        assert text == file.read_text()

    return compare
