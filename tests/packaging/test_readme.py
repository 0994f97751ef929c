"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def block(marker):
    match = re.search(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", README, flags=re.DOTALL)
    assert match, marker
    return match[1]


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run a ``dy2st`` command in the repository; return what it prints."""
    from dy2st.cli.main import main

    monkeypatch.chdir(ROOT)

    def run(*arguments):
        assert main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out.replace(f"{tmp_path}/", "")

    return run


def test_model_before():
    assert block("test: before") in (ROOT / "samples" / "newton.py").read_text()


def test_output(command, tmp_path):
    assert "samples/newton.py:model -o newton.onnx" in block("ci: convert")

    def stable(text):
        """The file's size depends on the length of the paths in its metadata."""
        return re.sub(r"[\d.]+ kB", "… kB", text)

    printed = command("convert", "samples/newton.py:model", "-o", tmp_path / "newton.onnx")
    assert stable(printed) == stable(block("test: output"))


def test_error():
    kept = (ROOT / "tests" / "errors" / "snapshots" / "D2S241.txt").read_text()
    assert block("test: error") == kept.replace("<tmp>/example.py", "model.py")


def test_code_after(command):
    assert command("code", "samples/newton.py:model") == block("test: after")


def test_formats(monkeypatch, capsys, tmp_path):
    from dy2st.cli.main import main
    from dy2st.report.formats import FORMATS

    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(block("test: formats"))
    assert program == "dy2st"
    assert main([argument.replace("samples/", f"{ROOT}/samples/") for argument in arguments]) == 0
    assert capsys.readouterr().out.startswith("::notice title=dy2st check::")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.xml"]
    told = re.search(r"### Formats\n(.*?)\n### ", README, flags=re.DOTALL)[1]
    assert sorted(re.findall(r"^\| `(\w+)` \|", told, flags=re.MULTILINE)) == sorted(FORMATS)


def test_pytest(tmp_path):
    (tmp_path / "test_example.py").write_text(block("test: pytest"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "dy2st.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout
    assert "3 checks of 1 model: 3 equal to eager; 2 of 2 paths taken" in done.stdout


def test_exit_codes_are_those_of_the_help(command):
    from dy2st.cli.main import _EXIT_CODES

    table = dict(re.findall(r"^\| (\d) \| (.*) \|$", README, flags=re.MULTILINE))
    helped = dict(re.findall(r"^  (\d)  (.*)$", _EXIT_CODES, flags=re.MULTILINE))
    assert {code: text.replace("`", "") for code, text in table.items()} == helped


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_python_example_names_what_exists():
    import dy2st

    names = set(re.findall(r"(?<!tool\.)\bdy2st\.(\w+)", README)) - {"parity"}
    assert all(hasattr(dy2st, name) for name in names)
    assert set(dy2st.__all__) - {"ParityReport"} <= names


def test_settings_example_is_valid(tmp_path):
    from dy2st.cli.settings import load_settings

    toml = re.search(r"```toml\n(.*?)```", README, flags=re.DOTALL)[1]
    (tmp_path / "pyproject.toml").write_text(textwrap.dedent(toml))
    settings = load_settings(tmp_path)
    assert settings.options["opset"] == 20
    assert settings.tables[0].options["rtol"] == {"scores": 1e-3}


def test_state(tmp_path, monkeypatch):
    import numpy as np
    import torch

    import dy2st

    monkeypatch.chdir(tmp_path)
    names = {"torch": torch, "numpy": np, "dy2st": dy2st}
    file = tmp_path / "example.py"
    file.write_text(block("test: state"))
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert names["heard"] == [False, True, True, True, False]
    assert set(names["saved"]) == {"floor", "held"}
