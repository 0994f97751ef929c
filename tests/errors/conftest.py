"""A folder to run examples in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # the tests import ``examples`` whatever pytest's import mode is


@pytest.fixture
def folder(forgotten, monkeypatch):
    """An empty working folder on the path; what is imported from it is forgotten afterwards."""
    dtype = torch.get_default_dtype()
    monkeypatch.chdir(forgotten)
    monkeypatch.setattr(sys, "path", [str(forgotten), *sys.path])
    yield forgotten
    torch.set_default_dtype(dtype)
