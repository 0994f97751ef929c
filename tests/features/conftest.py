"""Every feature test starts afresh, and hands on what it found for the rows of the feature table that it cites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import harness
import pytest
import torch
from feature_table import PROPERTY

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Every test starts with no findings, and with the same random weights in every order of the tests."""
    harness.outcomes.clear()
    torch.manual_seed(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what a test found with its report: reports travel between processes, module variables don't."""
    report = yield
    if call.when == "call" or report.failed:
        # A test that compares no model in all forms holds another feature, which was there.
        letters = "" if report.failed else "".join(sorted(set(harness.outcomes))) or "Y"
        for mark in item.iter_markers("row"):
            report.user_properties.extend((PROPERTY, [number, letters]) for number in mark.args)
    return report
