"""``check --search``: what is found is compared, saved and read back."""

from __future__ import annotations

import json

import pytest

MODEL = """
import torch

def model(x):
    if x.sum() > 40:
        x = x * 2
    while x.max() > 100:
        x = x / 2
    return x

example_inputs = [(torch.ones(3),), (torch.ones(2),)]
"""
STRATEGIES = """
from hypothesis import strategies as st
from net import model
import torch
input_strategies = {"x": st.integers(0, 99).map(lambda n: torch.full((3,), float(n)))}
"""


@pytest.fixture(autouse=True)
def _model(write):
    write("net.py", MODEL)


@pytest.mark.slow
def test_search(dy2st_command, folder):
    assert dy2st_command("check", "net.py").code == 1
    done = dy2st_command("check", "--search", "net.py", "--save-inputs", "found")
    assert done.code == 0, done.out + done.err
    assert "inputs for 3 paths" in done.out
    saved = sorted(path.name for path in (folder / "found").iterdir())
    assert "net_5_then.pt" in saved
    (folder / "plain").touch()
    assert (folder / "found" / saved[0]).stat().st_mode == (folder / "plain").stat().st_mode
    again = dy2st_command("check", "net.py", "--inputs", "found")
    assert "net_5_then " in again.out
    assert dy2st_command("check", "net.py", "--inputs", "found", "--allow-uncovered").code == 0


@pytest.mark.slow
def test_the_seed_decides(dy2st_command):
    def found(*options):
        report = json.loads(dy2st_command("check", "net.py", "--json", "--search=10", *options).out)
        return [(each["name"], each["description"]) for each in report["targets"][0]["inputs"]]

    assert found("--seed", "3") == found("--seed", "3")


def test_specs_and_choices(dy2st_command):
    done = dy2st_command("check", "net.py", "--input", "x=f32[n:1..4]:{0,30,70}", "--search=1")
    assert done.code == 1
    assert "searched with 150 runs: " in done.out
    assert "while x.max() > 100: it never ran with more trips" in done.out
    done = dy2st_command("check", "net.py", "--input", "x=f32[n:1..4]:{0,30,70,400}", "--search=1")
    assert done.code == 0, done.out


def test_strategies_of_the_module(dy2st_command, write):
    write("drawn.py", STRATEGIES)
    done = dy2st_command("check", "drawn.py", "--search", "--allow-uncovered")
    assert done.code == 0, done.err
    assert "searched with " in done.out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--search=0"], "search=0 is no time"),
        (["--search=x"], "invalid float value"),
        (["--save-inputs", "found"], "there is no --search"),
        (["--inputs", "empty"], "no input file in this folder"),
    ],
    ids=str,
)
def test_wrong_use(dy2st_command, folder, options, problem):
    (folder / "empty").mkdir()
    done = dy2st_command("check", "net.py", *options)
    assert done.code == 2
    assert problem in done.err


def test_a_spec_that_allows_no_elements(dy2st_command, write):
    write("sums.py", "def model(x):\n    return x.sum() / 2\n")
    done = dy2st_command("check", "sums.py", "--input", "x=f32[n,3]", "--search=1")
    assert done.code == 0, done.out + done.err
    assert "empty_x  x: f32[0, 3]  equal" in done.out
    done = dy2st_command("check", "sums.py", "--input", "x=f32[n:1..9,3]", "--search=1")
    assert "empty_x" not in done.out


@pytest.mark.slow_but_for("search1")
@pytest.mark.parametrize("search", [["--search", "5"], ["--search=5"], ["--search"]])
def test_seconds_may_follow_as_a_word_of_their_own(dy2st_command, search):
    for arguments in ([*search, "net.py"], ["net.py", *search], ["net.py", *search, "--json"]):
        assert dy2st_command("check", *arguments).code == 0
