"""What the formats write, against the schemas of those who read it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import xmlschema
from fluidattacks_core.sarif import SarifLog  # the OASIS schema of SARIF 2.1.0 as pydantic models
from pydantic import ValidationError

from dy2st.report import junit, sarif

JUNIT = Path(__file__).parent / "schemas" / "junit.xsd"


@pytest.fixture(scope="module")
def junit_schema():
    return xmlschema.XMLSchema(str(JUNIT))


def test_junit(any_run, junit_schema, tmp_path):
    file = tmp_path / "report.xml"
    file.write_text(junit.render(any_run), encoding="utf-8")
    junit_schema.validate(str(file))


def test_the_schema_of_junit_takes_what_pytest_writes(junit_schema, tmp_path):
    (tmp_path / "test_all.py").write_text(
        "import pytest\n"
        "def test_good(record_property): record_property('a', 'b')\n"
        "def test_bad(): assert False\n"
        "@pytest.mark.skip(reason='no')\ndef test_skipped(): pass\n"
        "@pytest.fixture\ndef broken(): raise ValueError\n"
        "def test_broken(broken): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    junit_schema.validate(str(tmp_path / "report.xml"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('time="0.500"', 'time="half"'),
        ("<properties>", "<properties/><properties>"),
        ('classname="', 'class="'),
        ("</failure>", '</failure><error message="two" type="causes"/>'),
        ('id="0"', 'id="first"'),
    ],
)
def test_the_schema_of_junit_refuses_what_is_wrong(runs, junit_schema, before, after):
    text = junit.render(runs["bad"])
    assert before in text
    assert not junit_schema.is_valid(text.replace(before, after, 1))


def test_sarif(any_run):
    SarifLog.model_validate_json(sarif.render(any_run))


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.pop("tool"),
        lambda run: run["results"][0].pop("message"),
        lambda run: run["results"][0].update(level="fatal"),
        lambda run: run["results"][0].update(unknown=1),
        lambda run: run["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
    ],
)
def test_the_schema_of_sarif_refuses_what_is_wrong(runs, change):
    log = json.loads(sarif.render(runs["bad"]))
    SarifLog.model_validate(log)
    change(log["runs"][0])
    with pytest.raises(ValidationError):
        SarifLog.model_validate(log)
