"""``[tool.dy2st]``: what holds for all targets, for one of them, and what the command line says."""

from __future__ import annotations

import argparse

import pytest

from dy2st.cli.main import _parser
from dy2st.cli.planning import options_for, planned
from dy2st.cli.settings import Settings, load_settings
from dy2st.errors import SettingsError

SETTINGS = """
[tool.dy2st]
targets = ["models", "net.py:f", "package.module:name"]
opset = 20
rtol = 1
atol = 1e-3
jobs = 3
timeout = 7

[[tool.dy2st.target]]
target = "net.py:f"
input = "x=f32[3]"
rtol = {out = 2, "" = 3}
allow_uncovered = true
allow_specialize = [12, "net.py:13"]
search = true

[[tool.dy2st.target]]
target = "other.py"
inputs = "saved"
opset = 19

[[tool.dy2st.target]]
target = "models/deep"
opset = 21

[[tool.dy2st.target]]
target = "models"
opset = 22
atol = 5
"""
MODEL = "model = example_inputs = None\n"


@pytest.fixture
def settings(write, folder):
    write("pyproject.toml", SETTINGS)
    for name in ("models/a.py", "models/deep/b.py", "net.py", "other.py"):
        write(name, MODEL)
    return load_settings(folder)


def options(*arguments):
    return _parser().parse_args(["check", *arguments])


def test_of_the_nearest_file(settings, write, folder, monkeypatch):
    write("deep/er/x", "")
    assert settings.targets == ("models", "net.py:f", "package.module:name")
    assert settings.options == {"opset": 20, "rtol": 1, "atol": 1e-3, "timeout": 7}
    monkeypatch.chdir(folder / "deep" / "er")
    below = load_settings(folder / "deep" / "er")
    assert below.targets == ("../../models", "../../net.py:f", "package.module:name")
    assert below.tables[1].target == "../../other.py"
    assert below.tables[1].options["inputs"] == "../../saved"
    write("deep/pyproject.toml", "[project]\nname = 'x'\n")
    assert load_settings(folder / "deep" / "er") == Settings(folder=folder / "deep")


def test_all_are_run_once_and_in_order(settings):
    jobs = planned(options(), settings)
    names = ["models/a.py", "models/deep/b.py", "net.py:f", "package.module:name", "other.py"]
    assert [each.target for each in jobs] == names
    assert [each.options["opset"] for each in jobs] == [22, 21, 20, 20, 19]
    assert [each.options["atol"] for each in jobs] == [5, 5, 1e-3, 1e-3, 1e-3]
    assert {each.options["timeout"] for each in jobs} == {7}


def test_of_one_target(settings):
    found = options_for("./net.py:f", options(), settings)
    assert found["input"] == ["x=f32[3]"]
    assert found["rtol"] == {"out": 2, "": 3}
    assert found["allow_specialize"] == ["12", "net.py:13"]
    assert found["search"] == 10
    assert options_for("net.py:g", options(), settings)["input"] == []
    assert options_for("other.py:model", options(), settings)["opset"] == 19


def test_the_command_line_wins(settings):
    given = options("--opset", "18", "--rtol", "out=9", "--atol", "0", "--seed", "0", "--input", "y=f32[]")
    found = options_for("net.py:f", given, settings)
    assert (found["opset"], found["atol"], found["seed"], found["input"]) == (18, 0, 0, ["y=f32[]"])
    assert found["rtol"] == {"out": 9, "": 3}
    assert options_for("net.py:f", options("--rtol", "4"), settings)["rtol"] == 4
    # --input and --inputs exclude each other, so one takes the place of the other
    found = options_for("other.py", options("--input", "x=f32[]"), settings)
    assert (found["input"], found["inputs"]) == (["x=f32[]"], None)


def test_defaults_without_a_file(folder):
    parsed = options("net.py")
    assert isinstance(parsed, argparse.Namespace)
    assert planned(parsed, Settings())[0].options["seed"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs = 0", "[tool.dy2st]: jobs is 0, not a whole number from 1 up"),
        ("allow_uncovered = 'yes'", "allow_uncovered is 'yes', not true or false"),
        ("opset = true", "opset is true, not a whole number"),
        ("targets = [1]", "targets is [1], not a text or a list of texts"),
        ("rtol = {out = 'x'}", "not a number from 0 up, or a table of such numbers by output"),
        ("search = 'long'", "not a number of seconds above 0, true or false"),
        ("allow_uncoverd = true", "has an unknown key 'allow_uncoverd'"),
        ("inputs = 'x'", "has an unknown key 'inputs'"),
        ("target = 'net.py'", "target is 'net.py', not a list of tables"),
        ("[[tool.dy2st.target]]\nopset = 20", "[[tool.dy2st.target]] has no target"),
        ("[[tool.dy2st.target]]\ntarget = 'a.py'\nopset = ''", "[[tool.dy2st.target]] of a.py: opset is '', not a"),
        ("[[tool.dy2st.target]]\ntarget = 'a.py'\njobs = 2", "of a.py has an unknown key 'jobs'"),
        ("[[tool.dy2st.target]]\ntarget = 'a.py'\n[[tool.dy2st.target]]\ntarget = './a.py:model'", "two [[tool.dy2st."),
    ],
)
def test_wrong_settings(write, folder, text, message):
    write("pyproject.toml", f"[tool.dy2st]\n{text}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(folder)
    assert caught.value.what.startswith(f"{folder}/pyproject.toml: ")
    assert message in caught.value.what


def test_a_close_name_is_proposed(write, folder):
    write("pyproject.toml", "[tool.dy2st]\nallow_uncoverd = true\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(folder)
    assert caught.value.hint == "'allow_uncovered', perhaps"


def test_a_target_that_is_a_module_is_found_from_below(write, folder, dy2st_command, monkeypatch):
    text = "import torch\ndef model(x):\n    return x + 1\nexample_inputs = [(torch.ones(2),)]\n"
    write("pack_of_settings/__init__.py", "")
    write("pack_of_settings/net.py", text)
    write("pyproject.toml", "[tool.dy2st]\ntargets = ['pack_of_settings.net']\n")
    write("below/x", "")
    monkeypatch.chdir(folder / "below")
    assert dy2st_command("check").code == 0


def test_convert_has_the_settings_of_its_target(write, dy2st_command):
    text = "import torch\ndef model(x):\n    return x + 1\nexample_inputs = [(torch.ones(2),)]\n"
    write("net.py", text)
    write("pyproject.toml", "[tool.dy2st]\nopset = 20\n[[tool.dy2st.target]]\ntarget = 'net.py'\nopset = 19\n")
    assert "(opset 19, " in dy2st_command("convert", "net.py").out
