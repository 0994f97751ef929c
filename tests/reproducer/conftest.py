"""Modules of users, written to a folder and imported from there."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A function that writes modules by name and imports the last of them; they are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(**texts):
        for name, text in texts.items():
            file = tmp_path / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(list(texts)[-1].replace("__", "."))

    yield write
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
