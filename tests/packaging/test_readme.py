"""What the README shows is what happens. ``tests/docs`` runs its other blocks, and those of the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.page_blocks import block

ROOT = Path(__file__).resolve().parents[2]
README, GALLERY = ROOT / "README.md", ROOT / "docs" / "gallery" / "index.md"


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
    assert block(GALLERY, "test: before") in (ROOT / "samples" / "newton.py").read_text()


def test_output(command, tmp_path):
    assert "samples/newton.py:model -o newton.onnx" in block(README, "ci: convert")

    def stable(text):
        """The file's size depends on the length of the paths in its metadata."""
        return re.sub(r"[\d.]+ kB", "… kB", text)

    printed = command("convert", "samples/newton.py:model", "-o", tmp_path / "newton.onnx")
    assert stable(printed) == stable(block(GALLERY, "test: output"))


def test_commands_that_ci_reads():
    assert "-m pytest -q -n auto -m 'not slow'" in block(README, "ci: tests")


def test_site_is_built_by_ci_as_the_readme_says():
    assert block(README, "test: site").strip() in (ROOT / ".ci" / "run").read_text()


def test_it_can_be_read_in_a_few_minutes():
    assert len(README.read_text().splitlines()) <= 120
