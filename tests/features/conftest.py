"""Prints the rows of the feature table that were tested, with what was found."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # the tests import ``harness`` whatever pytest's import mode is

from typing import TYPE_CHECKING

import harness

if TYPE_CHECKING:
    from collections.abc import Generator

ROWS = {
    1: "if/elif/else",
    2: "ternary",
    3: "while",
    4: "for over range",
    5: "for over tensor rows",
    6: "enumerate",
    7: "zip, reversed",
    8: "break",
    9: "continue",
    10: "early return in if",
    11: "return in a staged loop",
    12: "tensor jump in a Python loop",
    13: "for/else, while/else",
    14: "variable set in one branch",
    15: "variable born in a loop",
    16: "loop variable after the loop",
    17: "None or tensor",
    18: "dtype differs by branch",
    19: "shape differs by branch",
    20: "shape changes in a loop",
    21: "changed Python numbers",
    22: "lazy and/or/not",
    23: "chained comparison",
    24: "list append in a loop",
    25: "nested lists in loops",
    26: "list pop/insert/del/set",
    27: "dict with fixed keys",
    28: "dict with new keys",
    29: "self.x changed",
    30: "state changed in a callee",
    31: "assignments in place, aliases",
    32: "comprehension",
    33: "generator functions",
    34: "lambda",
    35: "nested function, closure",
    36: "partial, bound methods",
    37: "recursion, static depth",
    38: "recursion on a tensor",
    39: "super()",
    40: "decorated callee",
    41: "methods, properties, hooks",
    42: "try",
    43: "raise under a tensor condition",
    44: "with",
    45: "assert on tensor",
    46: "print, logging, warnings",
    47: "built-in functions on tensors",
    48: "dynamic sizes",
    49: "isinstance, hasattr, getattr",
    50: "numpy",
    51: "walrus",
    52: "match",
    53: "del",
    54: "global, nonlocal",
    55: "arguments",
    56: "nested inputs and outputs",
    57: "show the code",
    58: "opt out",
    59: "data-dependent sizes",
    60: "error at the source line",
    61: "cache of programs",
    62: "loop hints",
    63: "undo a conversion",
    64: "parity per path",
    65: "breakpoints, tracebacks",
    66: "gradients",
    67: "train and eval",
    68: "coverage of paths",
    69: "drift check",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(*numbers): evidence for these rows of the feature table")


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
        found = "fail" if report.failed else "R" if "R" in harness.outcomes else "Y"
        for mark in item.iter_markers("row"):
            report.user_properties.extend(("row", [number, found]) for number in mark.args)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found: dict[int, list[str]] = defaultdict(list)
    for state in ("passed", "failed", "error"):
        for report in terminalreporter.getreports(state):
            for name, value in getattr(report, "user_properties", ()):  # a collection error has none
                if name == "row":
                    found[value[0]].append(value[1])
    if not found:
        return
    terminalreporter.section("feature table")
    for number in sorted(found):
        results = found[number]
        verdict = "fail" if "fail" in results else "Y/R" if {"Y", "R"} <= set(results) else results[0]
        counts = ", ".join(f"{results.count(kind)} {kind}" for kind in ("Y", "R", "fail") if kind in results)
        terminalreporter.write_line(f"{number:>3}  {ROWS.get(number, ''):<32} {verdict:<5} {counts}")
