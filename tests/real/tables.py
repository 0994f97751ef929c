"""What the outcomes look like: a table on the terminal, and a page of the documentation."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

from tests.real.outcome import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.real.case import Case
    from tests.real.outcome import Outcome

LIBRARIES = ("torch", "onnx", "onnxruntime", "onnxscript")
MEANING = {
    "equal": "every input gives what eager gives, in the converted model, the program and on onnxruntime; one is "
    "left out, and counted in the row, where rounding alone takes eager to another path",
    "wrong": "some input does not",
    "refused": "dy2st says with a code and a line what it can't stage",
    "uncoded": "an error that is not one of dy2st's",
    "crashed": "the process ended",
    "timeout": "the time was up",
    "unusable": "eager raises on an input, and the program does not; or rounding alone decides about all inputs",
    "no eager": "eager itself fails: the case is broken",
    "missing": "its package is not installed",
}


def table(outcomes: Sequence[Outcome]) -> str:
    """How many of each outcome, and of each code."""
    kinds = Counter(each.kind for each in outcomes)
    lines = [f"{kinds[kind]:>5}  {kind}" for kind in reversed(KINDS) if kinds[kind]]
    lines.append(f"{len(outcomes):>5}  in all")
    codes = Counter(f"{each.kind} {each.code}" for each in outcomes if each.code)
    lines += ["", *(f"{count:>5}  {code}" for code, count in codes.most_common())] if codes else []
    return "\n".join(lines)


def page(cases: Mapping[str, Case], outcomes: Sequence[Outcome]) -> str:
    """``docs/real-models.md``."""
    kinds = Counter(each.kind for each in outcomes)
    known = {each.name: each for each in outcomes}
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    lines = [
        "# Code that was not written for dy2st",
        "",
        "Functions of public packages whose control flow depends on the values of tensors, each with inputs that",
        "take different ways through it. They were chosen before they were tried, and stay whatever comes out. How to",
        "install the packages and to run them is in [tests/real](../tests/real/README.md). This page is written by",
        "`python -m tests.real --write-docs`.",
        "",
        f"With {versions}:",
        "",
        "| outcome | cases | what it means |",
        "|--|--|--|",
        *(f"| {kind} | {kinds[kind]} | {MEANING[kind]} |" for kind in reversed(KINDS) if kinds[kind]),
        f"| in all | {len(outcomes)} | |",
    ]
    codes = Counter(each.code for each in outcomes if each.kind == "refused")
    if codes:
        lines += ["", "| code (`dy2st explain CODE`) | cases |", "|--|--|"]
        lines += [f"| {code} | {count} |" for code, count in codes.most_common()]
    for field in sorted({case.field for case in cases.values() if case.name in known}):
        lines += ["", f"## {field.replace('_', ' ').capitalize()}", ""]
        lines += ["| package | code | what is in it | outcome |", "|--|--|--|--|"]
        for each in cases.values():
            if each.field == field and each.name in known:
                lines.append(_row(each, known[each.name]))
    return "\n".join(lines) + "\n"


def _row(case: Case, outcome: Outcome) -> str:
    beside = outcome.left_out if outcome.kind == "equal" else ""
    found = " ".join(part for part in (outcome.kind, outcome.code, beside) if part)
    where = f" at `{_module(outcome.location)}`" if outcome.location else ""
    cells = (case.installed, f"`{case.where}`", case.why, found + where)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _module(location: str) -> str:
    """``package.module:12`` for ``package/module.py:12``, named as the code of a case is."""
    path, _, line = location.rpartition(":")
    return f"{path.removesuffix('.py').replace('/', '.')}:{line}"
