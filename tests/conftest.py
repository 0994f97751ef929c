"""Settings for all suites. Nothing here imports torch: tests/python runs without it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# The feature tests and this file import what lies there, whatever pytest's import mode is.
sys.path.insert(0, str(Path(__file__).parent / "features"))

from feature_table import FeatureTable

# Each worker runs small graphs: more threads than one only make them wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PYTHONHASHSEED", "0")


def pytest_configure(config):
    config.pluginmanager.register(FeatureTable(), "feature-table")


@pytest.fixture
def snapshot(request):
    """Compares a text with a file of the given name, in the folder ``snapshots`` beside the test.

    UPDATE_SNAPSHOTS=1 writes the file instead.
    """

    def compare(name, text):
        file = request.path.parent / "snapshots" / (name if Path(name).suffix else f"{name}.txt")
        if os.environ.get("UPDATE_SNAPSHOTS"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        assert text == file.read_text()

    return compare


@pytest.fixture
def forgotten(tmp_path):
    """The temporary folder; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]
