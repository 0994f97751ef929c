"""The feature table of docs/features.md, and whether the tests that cite its rows found what it says.

A test cites rows with ``@row(n)``. What it found travels with its report: ``Y`` where eager, the program and
onnxruntime agreed, ``R`` where the model was refused. Three things must hold: every row is cited, every citation has a
row, and over all tests that cite a row the findings are those of the row's column ``dy2st``.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "docs" / "features.md"
TESTS = Path(__file__).parent
PROPERTY = "row"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    construct: str
    says: frozenset[str]
    """What dy2st does with the construct: ``Y``, ``R`` or both, by program."""


def table(text: str) -> dict[int, Row]:
    """The rows by their number; the first column is the number, the second the construct, the seventh ours."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0].isdigit():
            assert int(cells[0]) not in rows, f"row {cells[0]} stands there twice"
            rows[int(cells[0])] = Row(cells[1], frozenset(cells[6].split("/")))
    return rows


def citations(folder: Path) -> dict[int, set[str]]:
    """The tests that cite each row, as ``file.py::function``; without the slow ones, which a run may leave out."""
    found = defaultdict(set)
    for file in sorted(folder.glob("test_*.py")):
        for node in ast.parse(file.read_text()).body:
            marks = getattr(node, "decorator_list", ())
            if any(ast.unparse(mark) == "pytest.mark.slow" for mark in marks):
                continue
            for mark in marks:
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "row":
                    for number in mark.args:
                        found[ast.literal_eval(number)].add(f"{file.name}::{node.name}")
    return dict(found)


def differences(rows: dict[int, Row], cited: dict[int, set[str]], found: dict[int, dict[str, str]]) -> list[str]:
    """Where the table and the tests that ran differ.

    ``found`` has the findings by row and test: some of ``Y`` and ``R``, or nothing of a test that failed. What no test
    found counts only if all tests that cite the row (``cited``) ran and passed: others may be the ones that find it.
    """
    told = []
    for number, by_test in sorted(found.items()):
        row = rows.get(number)
        if row is None:
            told.append(f"row {number} is cited by {min(by_test)}, and is not in the table")
            continue
        for test, letters in sorted(by_test.items()):
            if surplus := set(letters) - row.says:
                told.append(f"row {number} says {shown(row.says)}, but {test} found {shown(surplus)}: {row.construct}")
        passed = {test for test, letters in by_test.items() if letters}
        if number in cited and cited[number] <= passed:
            missing = row.says - set("".join(by_test.values()))
            if missing:
                told.append(f"row {number} says {shown(row.says)}, but no test found {shown(missing)}: {row.construct}")
    return told


def shown(letters: set[str] | frozenset[str]) -> str:
    """``Y``, ``R`` or ``Y/R``."""
    return "/".join(sorted(letters, reverse=True))


class FeatureTable:
    """Collects what the tests of a run found, prints it by row, and fails the run where the table says otherwise."""

    def __init__(self) -> None:
        self.found: dict[int, dict[str, str]] = defaultdict(dict)
        self.differences: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.partition("[")[0].rpartition("/")[2]
        for name, value in report.user_properties:
            if name == PROPERTY and (report.when == "call" or report.failed):
                number, letters = value
                before = self.found[number].get(test, letters)
                self.found[number][test] = "".join(sorted({*before, *letters})) if before and letters else ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        config = session.config
        if hasattr(config, "workerinput") or not self.found:
            return
        in_part = config.option.keyword or config.getoption("lf", default=False) or any("::" in a for a in config.args)
        cited = {} if in_part else citations(TESTS)
        self.differences = differences(table(FILE.read_text()), cited, self.found)
        if self.differences and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.found:
            return
        rows = table(FILE.read_text())
        terminalreporter.section("feature table")
        for number, by_test in sorted(self.found.items()):
            found = list(by_test.values())
            counts = [(sum(letter in each for each in found), letter) for letter in "YR"]
            counts.append((found.count(""), "failed"))
            told = ", ".join(f"{count} {what}" for count, what in counts if count)
            construct = rows[number].construct if number in rows else ""
            terminalreporter.write_line(f"{number:>3}  {construct[:60]:<60}  {told}")
        for difference in self.differences:
            terminalreporter.write_line(f"docs/features.md: {difference}", red=True)
