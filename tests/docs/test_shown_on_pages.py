"""Blocks of pages that are compared with something else than what a command prints, and links between pages."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections import Counter

import pytest

from tests.docs.page_blocks import PAGES, ROOT, anchors, block, links

DOCS = ROOT / "docs"
COMMAND_LINE, CI = DOCS / "reference" / "command-line.md", DOCS / "how-to" / "ci.md"


def named(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    for target in links(page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found.read_text()), target


def test_every_page_is_reached_from_the_readme():
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        reached.add(page)
        there = {(page.parent / target.partition("#")[0]).resolve() for target in links(page.read_text())}
        left += [each for each in there & {*PAGES} if each not in reached]
    assert {named(page) for page in PAGES if page not in reached} <= {"docs/index.md"}


def test_error():
    kept = (ROOT / "tests" / "errors" / "snapshots" / "D2S241.txt").read_text()
    assert block(DOCS / "how-to" / "refusals.md", "test: error") == kept.replace("<tmp>/example.py", "model.py")


def test_rewritten_code(capsys, monkeypatch):
    from dy2st.cli.main import main

    monkeypatch.chdir(ROOT)
    assert main(["code", "samples/newton.py:model"]) == 0
    assert capsys.readouterr().out == block(DOCS / "explanation" / "how-it-works.md", "test: after")


def test_formats(monkeypatch, capsys, tmp_path):
    from dy2st.cli.main import main
    from dy2st.report.formats import FORMATS

    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(block(CI, "test: formats"))
    assert program == "dy2st"
    assert main([argument.replace("samples/", f"{ROOT}/samples/") for argument in arguments]) == 0
    assert capsys.readouterr().out.startswith("::notice title=dy2st check::")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.xml"]
    assert sorted(re.findall(r"^\| `(\w+)` \|", CI.read_text(), flags=re.MULTILINE)) == sorted(FORMATS)


def test_pytest(tmp_path):
    (tmp_path / "test_example.py").write_text(block(CI, "test: pytest"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "dy2st.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout
    assert "3 checks of 1 model: 3 equal to eager; 2 of 2 paths taken" in done.stdout


def test_exit_codes_are_those_of_the_help():
    from dy2st.cli.main import _EXIT_CODES

    table = dict(re.findall(r"^\| (\d) \| (.*) \|$", COMMAND_LINE.read_text(), flags=re.MULTILINE))
    helped = dict(re.findall(r"^  (\d)  (.*)$", _EXIT_CODES, flags=re.MULTILINE))
    assert {code: text.replace("`", "") for code, text in table.items()} == helped


def test_every_command_is_in_the_table():
    from dy2st.cli.main import command_parsers

    told = set(re.findall(r"^\| `dy2st (\w+)", COMMAND_LINE.read_text(), flags=re.MULTILINE))
    assert told == set(command_parsers())


def test_settings_example_is_valid(tmp_path):
    from dy2st.cli.settings import load_settings

    (tmp_path / "pyproject.toml").write_text(textwrap.dedent(block(COMMAND_LINE, "test: settings")))
    settings = load_settings(tmp_path)
    assert settings.options["opset"] == 20
    assert settings.tables[0].options["rtol"] == {"scores": 1e-3}


def test_public_names_are_those_that_pages_name():
    import dy2st

    text = "".join(page.read_text() for page in PAGES if page.name not in {"real-models.md", "life-of-a-while.md"})
    names = set(re.findall(r"(?<![\w.])dy2st\.([a-z]\w+)\(", text))
    assert {name for name in names if not hasattr(dy2st, name)} == set()
    reference = (DOCS / "reference" / "api.md").read_text()
    assert {name for name in dy2st.__all__ if f".{name}\n" not in reference} == {"errors", "onnx"}


def test_state(tmp_path, monkeypatch):
    import numpy as np
    import torch

    import dy2st

    monkeypatch.chdir(tmp_path)
    names = {"torch": torch, "numpy": np, "dy2st": dy2st}
    file = tmp_path / "example.py"
    file.write_text(block(DOCS / "how-to" / "state.md", "test: state"))
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert names["heard"] == [False, True, True, True, False]
    assert set(names["saved"]) == {"floor", "held"}


def test_counts_of_the_comparison_are_those_of_the_feature_table():
    lines = (DOCS / "features.md").read_text().splitlines()
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| \d", line)]
    columns = {"dy2st": 6, "AutoGraph": 2, "Paddle": 3, "TorchScript": 4, "MindSpore": 5}
    counted = {}
    for name, column in columns.items():
        answers = Counter({"Y/R": "Y", "R": "N"}.get(row[column], row[column]) for row in rows)
        counted[name] = [answers[answer] for answer in ("Y", "P", "N", "W", "?")]
    page = (DOCS / "explanation" / "comparison.md").read_text()
    told = re.findall(r"^\| (\w+)((?: \| \d+){5}) \|$", page, flags=re.MULTILINE)
    assert {name: [int(each) for each in re.findall(r"\d+", cells)] for name, cells in told} == counted
    assert f"which has {len(rows)} constructs" in page
