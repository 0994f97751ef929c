"""The runner, with made-up cases: none of the packages is needed, or imported."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest

from dy2st.report.model import NO_EVIDENCE, InputResult, StageResult
from dy2st.report.parity_report import ParityReport
from tests.real.case import Case, load_cases
from tests.real.outcome import Outcome, judged, run_all, short
from tests.real.tables import page, table


def work(name):
    if name == "asleep":
        time.sleep(60)
    while name == "busy":
        pass
    if name == "dead":
        os._exit(3)
    return Outcome(name, "equal")


def test_each_case_has_a_process_and_a_time_limit():
    found = run_all(["good", "asleep", "busy", "dead"], jobs=4, limit=1, work=work, preload=(), patience=8)
    assert {each.name: (each.kind, each.code) for each in found} == {
        "good": ("equal", ""),
        "asleep": ("timeout", "1s"),
        "busy": ("timeout", "1s"),
        "dead": ("crashed", "exit 3"),
    }


OUTCOMES = (
    Outcome("good", "equal"),
    Outcome("bad", "refused", "D2S241", "some/file.py:3", "the text"),
    Outcome("ugly", "uncoded", "TypeError", text="Traceback\nTypeError: no"),
)


def test_the_table_counts_outcomes_and_codes():
    assert table(OUTCOMES).split("\n") == [
        "    1  equal",
        "    1  refused",
        "    1  uncoded",
        "    3  in all",
        "",
        "    1  refused D2S241",
        "    1  uncoded TypeError",
    ]
    assert [each.line for each in OUTCOMES] == [
        "equal",
        "refused D2S241 some/file.py:3",
        "uncoded TypeError: no",
    ]


def test_the_page_has_a_row_for_each_case():
    cases = {each.name: Case(each.name, "torch", "module.f", "an if", "solvers", lambda: None) for each in OUTCOMES}
    text = page(cases, OUTCOMES)
    assert "| refused | 1 |" in text
    assert "| D2S241 | 1 |" in text
    assert re.search(r"\| torch==\S+ \| `module.f` \| an if \| refused D2S241 at `some.file:3` \|", text)


def report(*problems):
    """A report of inputs that have these problems; an empty one is no problem, and "differs" a stage that does."""
    stages = {"differs": (StageResult("program", "differs"),), "": (StageResult("program", "equal"),)}
    inputs = [InputResult("0", "x", stages.get(each, ()), "" if each in stages else each) for each in problems]
    return ParityReport(model="m", inputs=tuple(inputs), onnx_file=None, tolerances={}, versions={})


LUCK = f"{NO_EVIDENCE}rounding alone decides"


@pytest.mark.parametrize(
    ("problems", "kind"),
    [
        (("", ""), "equal"),
        (("", LUCK), "equal"),
        ((LUCK, LUCK), "unusable"),
        (("", LUCK, "eager raises"), "unusable"),
        (("", "eager raises"), "unusable"),
        (("", LUCK, "differs"), "wrong"),
    ],
)
def test_inputs_that_are_no_evidence_need_others_beside_them(problems, kind):
    assert judged(report(*problems)) == kind


def test_what_is_left_out_is_counted():
    outcome = Outcome("good", "equal", text=f"input 0 (x): {LUCK}\ninput 2 (x): {LUCK}")
    assert outcome.line == "equal (2 inputs left out: no evidence)"


def test_places_are_the_same_on_every_machine():
    assert short("/home/x/lib/python3.11/site-packages/ot/utils.py") == "ot/utils.py"


def test_every_package_is_pinned_and_none_is_imported():
    before = set(sys.modules)
    cases = load_cases()
    assert not {"transformers", "kornia", "ot", "scipy"} & (set(sys.modules) - before)
    lines = (Path(__file__).parent / "requirements.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines if line and not line.startswith("#")}
    assert {each.package for each in cases.values()} - pinned == {"torch"}
    assert len(cases) >= 150
