"""What is written as JSON is what the published schema says."""

from __future__ import annotations

import copy
import dataclasses
import json

import jsonschema
import pytest

from dy2st.report import Difference, InputResult, ParityReport, PathSite, StageResult, Tolerance
from dy2st.report.as_json import SCHEMA_FILE, SCHEMA_VERSION, render
from dy2st.report.model import Culprit, OutputMetrics, Picture
from dy2st.report.run import Failure

SCHEMA = json.loads(SCHEMA_FILE.read_text())


def validate(found, schema=SCHEMA):
    jsonschema.Draft202012Validator(schema).validate(found)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA_FILE.stem == f"report-{SCHEMA_VERSION.partition('.')[0]}"


def test_runs(any_run):
    found = json.loads(render(any_run))
    validate(found)
    assert found["schema_version"] == SCHEMA_VERSION
    assert found["exit_code"] == any_run.exit_code
    assert [each["outcome"] for each in found["targets"]] == [each.outcome for each in any_run.targets]


def test_conversion(runs):
    (target,) = runs["good"].targets
    written = {"onnx_file": "net.onnx", "files": ["net.onnx"], "bytes": 3}
    run = dataclasses.replace(runs["good"], command="convert", targets=(dataclasses.replace(target, written=written),))
    found = json.loads(render(run))
    validate(found)
    assert (found["model"], found["onnx_file"], found["bytes"]) == (target.target, "net.onnx", 3)
    validate(json.loads(render(dataclasses.replace(run, targets=runs["refused"].targets))))


def test_a_report_of_the_python_interface(runs):
    report = runs["bad"].targets[0].report
    validate(json.loads(report.to_json()), {"$ref": "#/$defs/report", "$defs": SCHEMA["$defs"]})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ParityReport, "report"),
        (InputResult, "input"),
        (StageResult, "stage"),
        (Difference, "difference"),
        (OutputMetrics, "output"),
        (Culprit, "culprit"),
        (Picture, "picture"),
        (PathSite, "path"),
        (Tolerance, "tolerance"),
        (Failure, "failure"),
    ],
)
def test_every_field_is_in_the_schema(kind, name):
    assert {field.name for field in dataclasses.fields(kind)} <= set(SCHEMA["$defs"][name]["properties"])


def broken(runs):
    """Documents that a reader could not use."""
    found = json.loads(render(runs["full"]))
    for change in (
        lambda d: d.pop("schema_version"),
        lambda d: d.update(schema_version="2.0"),
        lambda d: d.update(exit_code="1"),
        lambda d: d.update(targets=[]),
        lambda d: d["targets"][0].pop("outcome"),
        lambda d: d["targets"][0].update(outcome="fine"),
        lambda d: d["targets"][1]["inputs"][0]["stages"][1].update(max_abs="many"),
        lambda d: d["targets"][1]["inputs"][0]["stages"][1]["pictures"][0].pop("grid"),
        lambda d: d["targets"][1]["paths"][0].update(line=0),
        lambda d: d["targets"][2].pop("errors"),
        lambda d: d["targets"][3]["error"].update(line="1"),
    ):
        changed = copy.deepcopy(found)
        change(changed)
        yield changed


def test_the_schema_is_strict_about_what_it_names(runs):
    for each in broken(runs):
        with pytest.raises(jsonschema.ValidationError):
            validate(each)


def test_unknown_keys_are_for_newer_readers(runs):
    found = json.loads(render(runs["full"]))
    found["later"] = found["targets"][0]["later"] = {"any": ["thing"]}
    validate(found | {"schema_version": "1.9"})


def test_half_a_surrogate_pair_is_replaced(runs):
    text = render(runs["hostile"])
    assert "\\ud800" not in text
    assert "\\ufffd" in text
