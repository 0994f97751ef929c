"""What every format says of a run that was interrupted, and of one beside a baseline; a line on a terminal."""

from __future__ import annotations

import io
import json
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from dy2st.cli.console import ProgressLine
from dy2st.report import InputResult, ParityReport, StageResult
from dy2st.report.as_json import SCHEMA_FILE
from dy2st.report.formats import FORMATS, render
from dy2st.report.run import Failure, Judgement, Run, TargetResult

GOOD = TargetResult(
    "good.py", 0, ParityReport("Net", (InputResult("0", "x: f32[3]", (StageResult("program", "equal"),)),))
)
REFUSED = TargetResult("bad.py", 2, failures=(Failure("D2S245", "NumpyError", "numpy on a tensor", "", "bad.py", 3),))


@pytest.mark.parametrize("name", FORMATS)
def test_an_interrupt_is_said(name):
    run = Run("check", "0.1.0", (GOOD,), left=2)
    text = render(run, name)
    assert (run.exit_code, run.passed) == (130, False)
    if name == "json":
        found = json.loads(text)
        jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(found)
        assert (found["interrupted"], found["exit_code"]) == (2, 130)
    elif name == "sarif":
        assert json.loads(text)["runs"][0]["invocations"][0]["exitCode"] == 130
    elif name == "junit":
        suites = ET.fromstring(text).findall("testsuite")
        assert [(each.get("name"), each.get("errors")) for each in suites] == [("good.py", "0"), ("interrupted", "1")]
    else:
        assert "interrupted" in text
        assert "2 not checked" in text


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_known_is_no_failure(name):
    known = TargetResult(
        "bad.py", 0, failures=REFUSED.failures, judgement=Judgement(better=("D2S241 bad.py: x",), known=True)
    )
    text = render(Run("check", "0.1.0", (GOOD, known)), name)
    assert "numpy on a tensor" in text
    if name == "junit":
        assert 'errors="1"' not in text
        assert 'skipped message="known: numpy on a tensor"' in text
    elif name == "sarif":
        results = json.loads(text)["runs"][0]["results"]
        assert {each["level"] for each in results} == {"note"}
        assert json.loads(text)["runs"][0]["invocations"][0]["executionSuccessful"]
    elif name == "github":
        assert "::error" not in text
        assert "no longer" in text
    elif name == "json":
        assert json.loads(text)["targets"][1]["baseline"] == {
            "known": True,
            "worse": [],
            "better": ["D2S241 bad.py: x"],
        }
    else:
        assert "known" in text


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_worse_is_a_failure_of_its_own(name):
    from dataclasses import replace

    worse = replace(GOOD, exit_code=1, judgement=Judgement(worse=("the graph has 9 nodes, and had 5",)))
    text = render(Run("check", "0.1.0", (worse,)), name)
    assert "the graph has 9 nodes, and had 5" in text
    if name == "junit":
        assert [each.get("failures") for each in ET.fromstring(text).findall("testsuite")] == ["1"]
    if name == "github":
        assert "::error title=worse-than-baseline%3A good.py::the graph has 9 nodes" in text


class Terminal(io.StringIO):
    """What a terminal is told."""

    def isatty(self):
        return True


def test_the_line_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    with ProgressLine() as line:
        line.show("1 of 2 done; a.py: capturing")
        line.show("1 of 2 done; a.py: capturing")
        line.clear()
        line.clear()
        line.show("2 of 2 done")
    start = "\r\x1b[2K"
    assert terminal.getvalue() == f"{start}1 of 2 done; a.py: {start}{start}2 of 2 done{start}"


def test_no_line_elsewhere(monkeypatch):
    for line, stream in ((ProgressLine, io.StringIO()), (lambda: ProgressLine(enabled=False), Terminal())):
        monkeypatch.setattr("sys.stderr", stream)
        with line() as shown:
            shown.show("1 of 2 done")
        assert stream.getvalue() == ""
