"""``--format``: several at once, to files and to stdout, and files that are whole or not there."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from dy2st.cli.output import ReportOutput
from dy2st.errors import SaveError
from dy2st.report.as_json import SCHEMA_FILE
from dy2st.report.formats import FORMATS

pytestmark = pytest.mark.usefixtures("in_this_process")

MODEL = """\
import torch

def model(x):
    if x.sum() > 0:
        return x * 2
    return -x

def example_inputs():
    return {"up": (torch.ones(3),), "down": (-torch.ones(5),)}

calls = 0

def unsteady(x):
    # What is not converted can't be seen to count.
    found = count()
    return x * found

def refused(x):
    return torch.from_numpy(x.numpy())

import dy2st

class Calls:
    number = 0

@dy2st.not_to_static
def count():
    Calls.number += 1
    return Calls.number
"""
ALL = [f"--format={name}=report.{name}" for name in FORMATS]


@pytest.fixture(autouse=True)
def _model(write):
    write("net.py", MODEL)


def validated(text):
    found = json.loads(text)
    jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(found)
    return found


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


def test_all_formats_of_targets_of_every_outcome(dy2st_command, folder):
    arguments = ["check", "net.py", "net.py:unsteady", "net.py:refused", "net.py:missing", "--input", "x=f32[3]:1..1"]
    done = dy2st_command(*arguments, *ALL)
    assert done.code == 2
    assert (
        done.out.splitlines()[-1]
        == "1 of 4 targets are equal to eager; 1 differs; 2 could not be checked; 1 not covered"
    )
    assert names(folder) == sorted(["net.py", *(f"report.{name}" for name in FORMATS)])
    texts = {name: (folder / f"report.{name}").read_text() for name in FORMATS}
    found = validated(texts["json"])
    assert [each["outcome"] for each in found["targets"]] == ["equal", "differs", "error", "error"]
    assert [each.get("error", {}).get("code") for each in found["targets"]] == [None, None, "D2S245", "D2S902"]
    assert found["exit_code"] == 2
    suites = ET.fromstring(texts["junit"]).findall("testsuite")
    assert [int(suite.get("failures")) for suite in suites] == [1, 2, 0, 0]
    assert [int(suite.get("errors")) for suite in suites] == [0, 0, 1, 1]
    results = json.loads(texts["sarif"])["runs"][0]["results"]
    places = [(each["ruleId"], each["locations"][0]["physicalLocation"]) for each in results]
    lines = {(rule, place["artifactLocation"]["uri"], place["region"]["startLine"]) for rule, place in places}
    assert lines == {
        ("D2S245", "net.py", 19),
        ("D2S902", "net.py", 1),
        ("D2S501", "net.py", 13),
        ("uncovered-path", "net.py", 4),
    }
    assert "::error file=net.py,line=19,col=" in texts["github"]
    assert "1 of 4 targets are equal to eager" in texts["markdown"]
    page = texts["html"]
    assert "if_4 = d2s.if_(" in page  # the rewritten source
    assert "node_Neg" in page or "node_neg" in page
    assert page.count("<svg") >= 2


def test_one_format_on_stdout_is_all_of_it(dy2st_command, folder):
    done = dy2st_command("check", "net.py", "--format", "sarif", "--format", "json=report.json")
    assert done.code == 0
    assert json.loads(done.out)["version"] == "2.1.0"
    assert validated((folder / "report.json").read_text())["exit_code"] == 0


def test_json_is_short_for_its_format(dy2st_command):
    def printed(*options):
        found = validated(dy2st_command("check", "net.py", "--no-cache", *options).out)
        for target in found["targets"]:
            del target["seconds"]
            for each in target["inputs"]:
                each.pop("seconds", None)
        return found

    assert printed("--json") == printed("--format", "json") == printed("--format=json", "--json")


def test_convert(dy2st_command, folder):
    done = dy2st_command("convert", "net.py", "--format", "json", *ALL[1:])
    found = validated(done.out)
    assert (found["model"], found["onnx_file"], found["files"]) == ("net.py", "net.onnx", ["net.onnx"])
    assert "Net.forward" not in (folder / "report.html").read_text()
    assert "wrote" not in done.out
    table = dy2st_command("convert", "net.py", "--no-check", "--format=json=report.json")
    assert table.out.startswith("wrote net.onnx, ")
    assert validated((folder / "report.json").read_text())["outcome"] == "unchecked"


def test_convert_that_is_refused(dy2st_command, folder):
    done = dy2st_command("convert", "net.py:refused", "--format", "json", "--format=junit=report.xml")
    assert done.code == 2
    assert done.err.startswith("dy2st: net.py:19: D2S245: ")
    assert validated(done.out)["error"]["code"] == "D2S245"
    assert names(folder) == ["net.py", "report.xml"]


def test_wrong_use_as_json(dy2st_command):
    for arguments in (["check", "--json"], ["check", "net.py", "--json", "--opset", "three"]):
        done = dy2st_command(*arguments)
        assert done.code == 2
        assert validated(done.out)["error"]["code"] == "D2S901"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "yaml"], "argument --format: there is no format 'yaml': one of json, junit, sarif, "),
        (["--format", "html="], "argument --format: 'html=' names no file: html=FILE, or html for stdout"),
        (
            ["--format", "html", "--format", "junit"],
            "html and junit can't both go to stdout (instead: a file for one: ",
        ),
        (["--json", "--format", "sarif"], "json and sarif can't both go to stdout"),
        (["--format", "html=a", "--format", "junit=./a"], "two formats can't go to the same file"),
        (["--format", "html=missing/a.html"], "D2S402: missing/a.html: the folder missing does not exist"),
        (["--format", "html=net.py"], "D2S402: net.py exists and is a .py file, no report: it is not overwritten"),
        (["--format", "html=/dev/null"], "D2S402: /dev/null is not a regular file"),
        (["--format", "html=."], "D2S402: . is a folder (instead: report.json)"),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
def test_wrong_use(dy2st_command, folder, options, message):
    done = dy2st_command("check", "not_imported.py", *options)
    assert done.code == 2
    assert done.err.startswith("dy2st: ")
    assert message in done.err
    assert "no such file" not in done.err  # said before any target is looked at
    assert (folder / "net.py").read_text() == MODEL


def test_a_report_replaces_an_older_one(folder):
    for name in ("report.html", "summary", "report.xml"):
        (folder / name).write_text("older")
        with ReportOutput(name) as output:
            output.path.write_text("newer")
            output.commit()
        assert (folder / name).read_text() == "newer"


def test_all_files_or_none(dy2st_command, folder, monkeypatch):
    """The disk is full when the second file is written."""
    (folder / "b.json").write_text("older")
    write = Path.write_text

    def full(path, text, **options):
        if path.name == "b.json":
            raise OSError(28, "No space left on device")
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    done = dy2st_command("check", "missing.py", "--format=html=a.html", "--format=json=b.json")
    assert done.code == 2
    assert done.err.splitlines()[-1] == "dy2st: D2S402: b.json can't be written: No space left on device"
    monkeypatch.undo()
    assert (folder / "b.json").read_text() == "older"
    assert names(folder) == ["b.json", "net.py"]


def test_an_existing_model_is_no_report(folder):
    (folder / "net.onnx").write_text("model")
    with pytest.raises(SaveError, match="is not overwritten"), ReportOutput("net.onnx"):
        pass
