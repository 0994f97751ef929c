"""Profiles of the fuzzers, and the closing table of what became of the programs."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the generator's modules

import profiles  # noqa: F401  registers them, before hypothesis looks for the one that is asked for


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many programs came out how."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in (each for found in terminalreporter.stats.values() for each in found):
        for name, value in getattr(report, "user_properties", ()):
            if name == "fuzzed" and report.when == "call":
                for kind, what, count in value:
                    counts[kind, what] += count
    if counts:
        from run import table

        terminalreporter.section("random programs")
        terminalreporter.write_line(table(counts))
