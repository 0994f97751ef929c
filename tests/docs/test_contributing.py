"""The construct that CONTRIBUTING.md adds is the one of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIFFS = re.findall(r"<!-- from: (\S+) -->\n```diff\n(.*?)```\n", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(("file", "diff"), DIFFS)
def test_lines_of_the_diff_stand_in_the_file(file, diff):
    text = (ROOT / file).read_text()
    for part in diff.split("...\n"):
        added = "\n".join(line.removeprefix("+") for line in part.splitlines())
        assert added in text


def test_every_station_of_a_construct_is_shown():
    folders = [Path(file).parts[:2] for file, _ in DIFFS]
    assert folders == [
        ("transforms", "assertions.py"),
        ("dy2st", "operators"),
        ("dy2st", "capture"),
        ("dy2st", "tracing"),
        ("dy2st", "onnx"),
    ]
