"""``--baseline``: what is worse than in an earlier run fails, what was wrong in it already does not."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from dy2st.report import InputResult, ParityReport, StageResult
from dy2st.report.as_json import SCHEMA_FILE
from dy2st.report.model import OutputMetrics
from dy2st.report.run import TargetResult
from dy2st.sweep.baseline import Baseline

pytestmark = pytest.mark.usefixtures("in_this_process")

GOOD = """\
import torch

def model(x):
    if x.sum() > 0:
        return x * 2
    return x - 3

example_inputs = {"up": (torch.ones(3),), "down": (-torch.ones(3),)}
"""
BAD = """\
import torch

def model(x):
    return torch.from_numpy(x.numpy())

def missed(x):
    if x.sum() > 0:
        return x * 2
    return x - 3

example_inputs = [(torch.ones(3),)]
"""
SETTINGS = """\
[tool.dy2st]
targets = ["good.py", "bad.py", "bad.py:missed"]
baseline = "base.json"
jobs = 1
"""


GRAPH = {
    "nodes": 5,
    "operators": {"Greater": 1, "If": 1, "Mul": 1, "ReduceSum": 1, "Sub": 1},
    "outputs": {"output": {"type": "float32[3]", "error": 0.0}},
}
WRITTEN = {
    "format": 1,
    "targets": {
        "bad.py": {"problems": ["D2S245 bad.py: return torch.from_numpy(x.numpy())"], "uncovered": []},
        "bad.py:missed": {"problems": [], "uncovered": ["uncovered-path bad.py: if if x.sum() > 0 else"], **GRAPH},
        "good.py": {"problems": [], "uncovered": [], **GRAPH},
    },
}


@pytest.fixture
def project(write):
    """Three targets, two of which fail, and the baseline of that."""
    write("pyproject.toml", SETTINGS)
    write("good.py", GOOD)
    write("bad.py", BAD)
    write("base.json", json.dumps(WRITTEN, indent=2) + "\n")


def test_the_file(project, dy2st_command):
    Path("base.json").unlink()
    done = dy2st_command("check", "--update-baseline")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "2 of 3 targets are equal to eager; 1 could not be checked; 2 known to fail"
    assert Path("base.json").read_text() == json.dumps(WRITTEN, indent=2) + "\n"


def test_what_is_known_does_not_fail(project, dy2st_command, write):
    write("bad.py", "# another line\n" + BAD)
    done = dy2st_command("check", "--format=json=a.json", "--format=junit=a.xml", "--format=github=a.txt")
    assert done.code == 0
    assert "bad.py: known to fail: the baseline has it" in done.out
    assert done.out.splitlines()[-1] == "2 of 3 targets are equal to eager; 1 could not be checked; 2 known to fail"
    report = json.loads(Path("a.json").read_text())
    jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(report)
    assert [each["baseline"]["known"] for each in report["targets"]] == [False, True, True]
    assert report["exit_code"] == 0
    suites = ET.parse("a.xml").getroot().findall("testsuite")
    assert [(each.get("failures"), each.get("errors"), each.get("skipped")) for each in suites] == [
        ("0", "0", "0"),
        ("0", "0", "1"),
        ("0", "0", "1"),
    ]
    assert "::error" not in Path("a.txt").read_text()


def test_what_is_worse_fails(project, dy2st_command, write):
    write("bad.py", BAD.replace("x.numpy()", "(x + 1).numpy()"))
    write("good.py", GOOD.replace("return x * 2", "return (x * 2 + 1, x)").replace("x - 3", "x - 3, x + 1"))
    done = dy2st_command(
        "check", *[f"--format={name}=a.{name}" for name in ("json", "junit", "sarif", "html", "github")]
    )
    assert done.code == 2  # the other refusal's
    worse = [line.strip() for line in done.out.splitlines() if "worse than the baseline: " in line]
    assert worse == [
        "worse than the baseline: the graph has 8 nodes, and had 5",
        "worse than the baseline: there is no output output",
        "worse than the baseline: there is a new output output[0]",
        "worse than the baseline: there is a new output output[1]",
        "bad.py: worse than the baseline: D2S245 bad.py: return torch.from_numpy((x + 1).numpy())",
    ]
    assert (
        done.out.splitlines()[-1]
        == "2 of 3 targets are equal to eager; 1 could not be checked; 1 known to fail; 2 worse than the baseline"
    )
    for name in ("json", "junit", "sarif", "html", "github"):
        assert "the graph has 8 nodes, and had 5" in Path(f"a.{name}").read_text()
    assert dy2st_command("check", "good.py").code == 1


def test_what_is_better_is_said(project, dy2st_command, write):
    write("bad.py", BAD.replace("x.numpy()", "x.numpy()").replace("torch.from_numpy(x.numpy())", "x + 1"))
    done = dy2st_command("check", "bad.py")
    assert done.code == 0
    assert "better than the baseline: no longer D2S245 bad.py: return torch.from_numpy(x.numpy())" in done.out
    assert dy2st_command("check", "bad.py", "--update-baseline").code == 0
    assert json.loads(Path("base.json").read_text())["targets"]["bad.py"]["problems"] == []
    assert len(json.loads(Path("base.json").read_text())["targets"]) == 3


def test_a_target_that_is_gone(project, dy2st_command, write):
    write("pyproject.toml", SETTINGS.replace('"good.py", ', ""))
    done = dy2st_command("check")
    assert done.code == 1
    said = "dy2st: good.py: D2S506: the baseline has this target, and it was not checked"
    assert done.err.splitlines()[-1].startswith(said)
    assert dy2st_command("check", "bad.py").code == 0
    assert dy2st_command("check", "--update-baseline").code == 0
    assert sorted(json.loads(Path("base.json").read_text())["targets"]) == ["bad.py", "bad.py:missed"]


def test_no_baseline_and_no_baseline_at_all(project, dy2st_command, write):
    Path("base.json").unlink()
    done = dy2st_command("check", "good.py")
    assert (done.code, done.err.splitlines()[0][:20]) == (2, "dy2st: D2S907: base.")
    write("other.json", "{}")
    done = dy2st_command("check", "good.py", "--baseline", "other.json")
    assert done.code == 2
    assert "other.json can't be read: there are no targets in it" in done.err
    write("other.json", '{"format": 9, "targets": {}}')
    assert "its format is 9, not 1" in dy2st_command("check", "good.py", "--baseline", "other.json").err
    write("other.json", '{"format": 1, "targets": {"x": 3}}')
    assert "the entry of x is none" in dy2st_command("check", "good.py", "--baseline", "other.json").err


def test_a_single_target_in_this_process(project, dy2st_command):
    done = dy2st_command("check", "bad.py")
    assert done.code == 0
    assert done.out == "bad.py: known to fail: the baseline has it\n"


def result(error=0.0, dtype="float32", shape=(3,), status="equal", nodes=100):
    metrics = OutputMetrics("out", dtype=dtype, shape=shape, of_tolerance=error)
    stage = StageResult("onnxruntime", status, outputs=(metrics,))
    report = ParityReport("Net", (InputResult("0", "x: f32[3]", (stage,)),), graph={"Add": nodes})
    return TargetResult("net.py", 0 if status == "equal" else 1, report)


@pytest.mark.parametrize(
    ("after", "worse"),
    [
        (result(error=1e-9), []),
        (result(error=0.04), []),
        (result(error=0.11), ["output out is off by 1 of its tolerance, and was by 0.001"]),
        (result(nodes=110), []),
        (result(nodes=111), ["the graph has 111 nodes, and had 100"]),
        (result(dtype="float64"), ["output out is float64[3], and was float32[3]"]),
        (result(shape=(4,)), ["output out is float32[4], and was float32[3]"]),
    ],
)
def test_what_counts_as_worse(folder, after, worse):
    before = Baseline(folder, {}).updated([result(error=0.0004)], whole=True)
    judged = before.judged(after)
    assert list(judged.worse) == worse
    assert judged.exit_code == bool(worse)


def test_a_process_that_died_is_never_known(folder):
    from dy2st.report.run import Failure

    died = TargetResult("net.py", 1, failures=(Failure("D2S505", "LostProcessError", "it has died"),))
    baseline = Baseline(folder, {}).updated([died], whole=True)
    assert baseline.entries["net.py"]["problems"] == []
    assert baseline.judged(died).exit_code == 1


def test_targets_are_named_from_the_files_folder(folder, write):
    write("models/net.py", "")
    baseline = Baseline(folder / "ci", {})
    assert baseline.name("models/net.py:model") == "../models/net.py"
    assert baseline.name(str(folder / "models" / "net.py") + ":other") == "../models/net.py:other"
    assert baseline.name("package.module:name") == "package.module:name"
    assert baseline.name("package.module") == "package.module"
