"""Settings for the tests of the check."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _by_runs_alone(unhurried):
    """No search here ends by the clock."""
