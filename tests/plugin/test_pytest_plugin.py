"""The pytest plugin, seen from outside: runs of pytest in processes of their own, on tests as users write them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[2]

MODELS = """
import torch


def two_arms(x):
    if x.sum() > 0:
        return x * 2
    return x + 1


def blank(x):
    return x * 2, x[x > 1]


def accepted(x):
    if x.sum() > 0:  # dy2st: uncovered ok
        return x * 2
    return x + 1


def refused(values):
    seen = set()
    for value in values:
        seen.add(float(value))
    return values * len(seen)


class Halving(torch.nn.Module):
    def forward(self, x, *, limit):
        while x.max() > limit:
            x = x / 2
        return x


class Stateful:
    calls = 0

    def __call__(self, x):
        return x + counted()


@__import__("dy2st").not_to_static
def counted():
    Stateful.calls += 1
    return Stateful.calls
"""

TESTS = """
import unittest
from dataclasses import dataclass

import pytest
import torch
from models import Halving, Stateful, accepted, blank, refused, two_arms

ONES = torch.ones(3)


def test_one_call_after_the_other(dy2st_check):
    report = dy2st_check(two_arms, (ONES,))
    assert report.ok
    assert not report.covered
    dy2st_check(two_arms, (-ONES,))


def test_sets(dy2st_check):
    assert len(dy2st_check(two_arms, [(ONES,), (-torch.ones(5),)]).inputs) == 2
    assert dy2st_check(two_arms, {"up": (ONES,), "down": {"x": -ONES}}).covered


def test_keywords(dy2st_check):
    with pytest.raises(AssertionError, match="kwargs are for the arguments of one call"):
        dy2st_check(Halving(), [(ONES,)], {"limit": ONES[0]})
    for scale in (0.5, 1.5, 5):
        dy2st_check(Halving(), (ONES * scale,), {"limit": ONES[0]})


def test_allowed_and_accepted(dy2st_check):
    dy2st_check(two_arms, (ONES,), allow_uncovered=True)
    dy2st_check(accepted, (ONES,))


def test_bad_uncovered(dy2st_check):
    dy2st_check(two_arms, (ONES,))


def test_bad_blank(dy2st_check):
    dy2st_check(blank, (ONES,))
    dy2st_check(blank, (-ONES,))


def test_blank_at_first(dy2st_check):
    dy2st_check(blank, (-ONES,))
    dy2st_check(blank, (ONES + 1,))


@pytest.mark.xfail(strict=True)
def test_uncovered_as_expected(dy2st_check):
    dy2st_check(two_arms, (ONES,))


def test_bad_values(dy2st_check):
    dy2st_check(Stateful(), (ONES,))


def test_bad_refused(dy2st_check):
    dy2st_check(refused, (torch.tensor([1, 2]),))


def test_bad_input(dy2st_check):
    dy2st_check(two_arms, ONES)


@pytest.mark.dy2st([(ONES,), (-ONES,)])
@pytest.mark.parametrize("model", [two_arms, accepted])
def test_marked(model):
    return model


def inputs():
    yield ONES,
    yield -torch.ones(2),


@pytest.mark.dy2st(inputs, rtol=1e-3, allow_uncovered=True)
def test_marked_with_a_function():
    return two_arms


@pytest.mark.dy2st(((ONES,),))
class TestMarked:
    def test_method(self):
        return accepted

    def test_bad_method(self):
        return two_arms


@pytest.mark.dy2st([(torch.tensor([1, 2]),)])
def test_bad_marked_refused():
    return refused


@pytest.mark.dy2st([(ONES,)])
def test_bad_returns_nothing():
    pass


@pytest.mark.dy2st([(ONES,)])
def test_bad_returns_a_number():
    return 5


@pytest.mark.dy2st([(ONES,)])
async def test_bad_async():
    return two_arms


@pytest.mark.dy2st([(ONES,)], tolerance=1)
def test_bad_argument():
    return two_arms


@pytest.mark.dy2st
def test_bad_no_inputs():
    return two_arms


@pytest.mark.dy2st([(ONES,)])
class TestBadUnittest(unittest.TestCase):
    def test_method(self):
        return two_arms
"""

PLAIN = """
import sys


def test_plain():
    assert "torch" not in sys.modules


def test_has_the_fixture(request):
    assert callable(request.getfixturevalue("dy2st_check"))
"""


def run(folder, *arguments, plugin=("-p", "dy2st.pytest_plugin"), **more):
    """Pytest in a process that loads no other plugins but those named."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "150",
        **more,
    }
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tests")
    (folder / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\naddopts = "--strict-markers"\nfilterwarnings = ["error"]\npythonpath = ["."]\n'
        "[tool.dy2st]\nopset = 19\n"
    )
    (folder / "models.py").write_text(MODELS)
    (folder / "test_models.py").write_text(TESTS)
    return folder


@pytest.fixture(scope="module")
def done(folder):
    return run(folder, "test_models.py", "-rA", "--junitxml=report.xml")


def part(done, name):
    """What is told of one failed test."""
    found = re.search(rf"\n_+ {name} _+\n(.*?)\n(?:_+ .* _+\n|=+ )", done.stdout, flags=re.DOTALL)
    assert found, done.stdout
    return found[1]


@pytest.mark.slow
def test_outcomes(done):
    assert done.returncode == 1
    lines = re.findall(r"^(PASSED|FAILED|ERROR|XFAIL) \S+?\.py::(\S+)", done.stdout, flags=re.MULTILINE)
    told = {name: word for word, name in lines}
    assert len(told) == 23
    for name, word in told.items():
        expected = "FAILED" if "bad" in name.lower() else "PASSED"
        expected = {"TestBadUnittest::test_method": "ERROR", "test_uncovered_as_expected": "XFAIL"}.get(name, expected)
        assert word == expected, name


def test_what_is_uncovered(done):
    for name in ("test_bad_uncovered", "TestMarked.test_bad_method"):
        told = part(done, name)
        assert told.splitlines() == [
            "not covered: models.py:6: if x.sum() > 0: its else-arm never ran",
            "  instead: inputs that take it (or give the output a value), or on its line: # dy2st: uncovered ok",
        ]


def test_an_output_without_a_value(done):
    told = part(done, "test_bad_blank")
    assert told.splitlines()[0] == "not covered: blank: output[1] is empty on every input: no value of it is compared"


def test_what_differs(done):
    told = part(done, "test_bad_values")
    assert "AssertionError: Stateful differs: equal to eager on 0 of 1 input" in told
    assert "largest difference" in told
    assert "it keeps state outside of the model" in told
    assert "site-packages" not in told
    assert len(told.splitlines()) < 20


def test_what_is_refused(done):
    for name in ("test_bad_refused", "test_bad_marked_refused"):
        told = part(done, name)
        assert "refused can't be checked" in told
        assert "models.py:24: D2S241: " in told
        assert "instead: " in told
        assert len(told.splitlines()) < 20


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("test_bad_input", "the example inputs are of type Tensor"),
        (
            "test_bad_returns_nothing",
            "a test marked dy2st returns the model to check; test_bad_returns_nothing returned nothing",
        ),
        ("test_bad_returns_a_number", "returned a value of type int"),
        ("test_bad_async", "returned a value of type coroutine"),
        (
            "test_bad_argument",
            "got an unexpected keyword argument 'tolerance'; it is written @pytest.mark.dy2st(inputs",
        ),
        ("test_bad_no_inputs", "missing a required argument: 'inputs'"),
        ("ERROR at setup of TestBadUnittest.test_method", "not for methods of unittest"),
    ],
)
def test_wrong_use(done, name, message):
    assert message in part(done, name)


def test_summary(done):
    section = done.stdout.partition("= dy2st =")[2]
    assert "checks of 6 models: 20 equal to eager, 1 different, 4 refused; 7 of 7 paths taken\n" in section
    assert "not covered by any test" not in section


def test_junit_properties(done, folder):
    cases = ET.parse(folder / "report.xml").getroot().iter("testcase")
    found = {case.get("name"): [each.get("value") for each in case.iter("property")] for case in cases}
    assert found["test_one_call_after_the_other"] == ["two_arms: equal on 1 input; 1 of 2 paths"] * 2
    assert found["test_bad_refused"] == ["refused: refused"]
    assert found["test_bad_argument"] == []


@pytest.mark.slow
def test_search_allowance_and_workers(folder):
    """With a search nothing stays uncovered; the records of workers reach the summary."""
    chosen = ["test_models.py", "-k", "test_bad_uncovered or test_keywords"]
    searched = run(folder, *chosen, "--dy2st-search=1", "-p", "xdist.plugin", "-n", "2")
    assert searched.returncode == 0, searched.stdout
    assert "5 checks of 2 models: 4 equal to eager, 1 refused; 5 of 5 paths taken" in searched.stdout
    allowed = run(folder, "test_models.py", "-k", "test_bad_uncovered", "--dy2st-allow-uncovered")
    assert allowed.returncode == 0, allowed.stdout
    assert "1 check of 1 model: 1 equal to eager; 1 of 2 paths taken" in allowed.stdout
    assert "not covered by any test: models.py:6: if x.sum() > 0: its else-arm never ran" in allowed.stdout


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "test_plain.py").write_text(PLAIN)
    return tmp_path


def test_costs_nothing_unless_it_is_used(plain):
    done = run(plain, "-v", "test_plain.py")
    assert done.returncode == 0, done.stdout
    assert "= dy2st =" not in done.stdout
    (plain / "conftest.py").write_text(
        "import json, sys\ndef pytest_unconfigure():\n"
        "    print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    listed = run(plain, "-q", "--collect-only", "test_plain.py")
    assert listed.returncode == 0, listed.stdout
    loaded = set(json.loads(listed.stdout.splitlines()[-1]))
    assert "dy2st" in loaded
    assert not loaded & {"torch", "numpy", "libcst", "rich", "onnx", "onnxruntime"}


def test_marker_is_listed(plain):
    assert "@pytest.mark.dy2st(inputs, *, dynamic_shapes" in run(plain, "--markers").stdout


def test_entry_point(plain):
    """Found by its entry point, and left out by its name."""
    info = plain / "site" / "anything-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: anything\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest11]\ndy2st = dy2st.pytest_plugin\n")
    path = os.pathsep.join([str(plain / "site"), str(ROOT)])
    ways = {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""}
    assert run(plain, "test_plain.py", plugin=(), **ways).returncode == 0
    left_out = run(plain, "test_plain.py", plugin=("-p", "no:dy2st"), **ways)
    assert "1 failed, 1 passed" in left_out.stdout
