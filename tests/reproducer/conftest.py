"""Modules of users, written to a folder and imported from there."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture
def modules(forgotten, monkeypatch):
    """A function that writes modules by name and imports the last of them; they are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(forgotten))

    def write(**texts):
        for name, text in texts.items():
            file = forgotten / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(list(texts)[-1].replace("__", "."))

    return write
