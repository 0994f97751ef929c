"""Workflow commands: escapes, limits, and what comes first."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from dy2st.report.github import MOST, render

COMMAND = re.compile(r"::(error|warning|notice) ([^\n]*?)::([^\n]*)")


def parsed(text):
    """What a runner reads: the command, its properties and its message, with the escapes undone."""

    def plain(part):
        for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            part = part.replace(code, character)
        return part

    found = []
    for line in text.splitlines():
        command, properties, message = COMMAND.fullmatch(line).groups()
        pairs = dict(pair.split("=", 1) for pair in properties.split(","))
        found.append((command, {key: plain(value) for key, value in pairs.items()}, plain(message)))
    return found


def test_text(runs, snapshot):
    snapshot("full.github.txt", render(runs["full"]))


def test_every_line_is_one_command(any_run):
    found = parsed(render(any_run))
    assert found[-1][0] == "notice"
    for command in ("error", "warning", "notice"):
        assert sum(each[0] == command for each in found) <= 10


def test_escapes(runs):
    hostile = parsed(render(runs["hostile"]))
    (name,) = {each.target for each in runs["hostile"].targets}
    titles = {properties["title"] for _, properties, _ in hostile[:-1]}
    assert {title.partition(": ")[2] for title in titles} == {name}
    assert any("second line" in message for *_, message in hostile)
    assert any(properties.get("file") == os.path.normpath(f"{name}.py") for _, properties, _ in hostile)


def test_the_worst_are_shown_and_the_rest_counted(runs):
    (target,) = runs["bad"].targets
    (result, *_) = target.report.inputs
    stage = result.stages[1]
    many = tuple(
        replace(stage, stage=f"stage {size:02}", max_abs=float(size), differences=stage.differences[:1])
        for size in range(25)
    )
    report = replace(target.report, inputs=(replace(result, stages=many),))
    crowded = replace(runs["bad"], targets=(replace(target, report=report, uncovered_fails=False),))
    found = parsed(render(crowded))
    errors = [message for command, _, message in found if command == "error"]
    assert len(errors) == MOST
    assert [int(re.search(r"stage (\d\d)", message)[1]) for message in errors] == list(range(24, 14, -1))
    assert [command for command, *_ in found].count("warning") == 2
    assert found[-1][2].endswith("; 15 errors more than GitHub shows")


def test_all_is_well(runs):
    assert render(runs["good"]) == "::notice title=dy2st check::models/good.py: equal to eager on the one input\n"
