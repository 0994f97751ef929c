"""Findings: what counts as one, how bad it is, and where it is."""

from __future__ import annotations

from dataclasses import replace

from dy2st.report.findings import findings


def test_order_levels_and_places(runs):
    found = [(each.level, each.code, each.location and each.location.line) for each in findings(runs["full"])]
    assert found == [
        ("error", "internal-error", None),
        ("error", "D2S241", 7),
        ("error", "D2S245", 3),
        ("error", "D2S902", None),
        ("error", "D2S501", 17),  # the line that the difference begins at
        ("error", "D2S501", 17),
        ("error", "D2S501", 11),
        ("error", "D2S502", 11),
        ("error", "uncovered-path", 12),
        ("error", "uncovered-path", 15),
        ("note", "fixed-size", 20),
        ("note", "dropped-guard", 21),
    ]


def test_one_for_each_output_whatever_the_number_of_inputs(runs):
    differences = [each.message for each in findings(runs["bad"]) if each.code == "D2S501"]
    first = "; first at line 17: x: eager 1 vs onnxruntime 4 (trip 2); node node_add (and on 1 more input: 1)"
    onnxruntime = "input 0 (x: f32[3]): onnxruntime"
    assert differences == [
        f"{onnxruntime}: output[0]: eager has 1 at [0, 1], this 4 (1 of 6 elements differ){first}",
        f"{onnxruntime}: output[1]: eager has shape [2], this [3]{first}",
        "input up (x: f32[5]): onnxruntime failed: RuntimeError: no kernel",
    ]


def test_uncovered_paths_that_are_allowed_are_warnings(runs):
    target = replace(runs["bad"].targets[0], uncovered_fails=False)
    found = findings(replace(runs["bad"], targets=(target,)))
    assert {each.level for each in found if each.code == "uncovered-path"} == {"warning"}


def test_paths_are_told_from_the_root_of_the_repository(runs):
    run = replace(runs["good"], root="/repository", folder="/repository/models")
    assert run.shown("net.py") == "models/net.py"
    assert run.shown("../other/net.py") == "other/net.py"
    assert run.shown("/repository/a.py") == "a.py"
    assert run.shown("/elsewhere/a.py") == "/elsewhere/a.py"
    assert replace(run, root="", folder="").shown("/elsewhere/a.py") == "/elsewhere/a.py"


def test_verdicts(runs):
    assert [each.verdict() for each in runs["full"].targets] == [
        "equal to eager on the one input",
        "differs: equal to eager on 0 of 4 inputs, but 2 paths are not covered",
        "could not be checked: 2 errors",
        "could not be checked",
        "could not be checked",
    ]
    assert (
        runs["full"].verdict() == "1 of 5 targets are equal to eager; 1 differs; 3 could not be checked; 1 not covered"
    )
    assert (runs["full"].exit_code, runs["full"].passed) == (3, False)
    assert (runs["good"].exit_code, runs["good"].passed) == (0, True)
