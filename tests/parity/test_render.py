"""The renderers show the same facts: plain text, and a table on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from dy2st.report import Difference, InputResult, ParityReport, StageResult
from dy2st.report.parity_report import graph_line, render_text, summary
from dy2st.report.table import print_table

EQUAL = StageResult("program", "equal", 1.2e-7, 1e-6)
WRONG = StageResult("onnxruntime", "differs", 3.0, 1.0, (Difference("output", "value", "eager has 1, this 4", (0,)),))
FAILED = StageResult("onnxruntime", "error", message="RuntimeError: no")
REPORT = ParityReport(
    "Net",
    (
        InputResult("0", "x: f32[3]", (EQUAL, WRONG)),
        InputResult("1", "x: f32[4]", (EQUAL, FAILED)),
        InputResult("2", "x: f32[" + ", ".join("1" * 40) + "]", problem="eager itself raises ValueError"),
    ),
    graph={"Add": 1, "If": 2, "Loop": 1},
    opset=18,
)


def test_text():
    lines = render_text(REPORT).splitlines()
    assert lines[2].split() == ["0", "x:", "f32[3]", "equal", "differs", "3"]
    assert lines[3].split() == ["1", "x:", "f32[4]", "equal", "error", "1.2e-07"]
    assert lines[4].rstrip().endswith("…  unusable")
    assert lines[5:] == [
        "  input 0 (x: f32[3]): onnxruntime: output: eager has 1, this 4",
        "  input 1 (x: f32[4]): onnxruntime failed: RuntimeError: no",
        f"  input 2 ({REPORT.inputs[2].description}): eager itself raises ValueError",
        "the first stage that differs from eager: onnxruntime",
        "differs: equal to eager on 0 of 3 inputs",
    ]
    assert str(REPORT) == render_text(REPORT)


def test_table_has_the_same_words():
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None)
    print_table(REPORT, console)
    words = console.file.getvalue().split()
    assert [word for word in render_text(REPORT).split() if set(word) != {"-"}] == words


def test_summaries():
    one = ParityReport("f", (InputResult("0", "", (EQUAL,)),))
    assert summary(one) == "equal to eager on the one input"
    assert summary(ParityReport("f", ())) == "unusable: equal to eager on 0 of 0 inputs"
    assert graph_line(REPORT) == "opset 18, 4 nodes, with 2 If and 1 Loop"
    assert graph_line(one) == ""


def test_outcomes():
    usable = InputResult("0", "", (EQUAL,))
    unusable = InputResult("1", "", problem="all NaN")
    assert ParityReport("f", (usable,)).outcome == "equal"
    assert ParityReport("f", (usable, unusable)).outcome == "unusable"
    assert ParityReport("f", (usable, unusable, REPORT.inputs[0])).outcome == "differs"
    assert ParityReport("f", ()).problems() == ["f: there were no inputs to compare"]


def test_json_has_no_numbers_that_json_lacks():
    stage = StageResult("program", "differs", float("inf"), float("nan"))
    plain = ParityReport("f", (InputResult("0", "", (stage,)),)).to_dict()
    assert plain["inputs"][0]["stages"][0]["max_abs"] == "inf"
    assert plain["inputs"][0]["stages"][0]["max_rel"] == "nan"
