"""``dy2st check``: convert one target or many, compare each with eager, and leave no file."""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.cli.console import graph_facts, print_report, progress
from dy2st.cli.convert import export_and_check
from dy2st.cli.failures import DIFFERS, EXIT_CODES, OK, report_error
from dy2st.cli.settings import load_settings
from dy2st.cli.target import load_target, targets_in
from dy2st.errors import TargetError, UsageError
from dy2st.report.text import path_lines, summary

if TYPE_CHECKING:
    from dy2st.cli.settings import Settings
    from dy2st.report.model import ParityReport


def check(options: Namespace) -> int:
    """Check every target; the exit code is the highest of theirs, and one that fails does not stop the others."""
    settings = load_settings(Path.cwd())
    targets = _targets(options.targets or list(settings.targets))
    codes: list[int] = []
    gaps = 0
    found: list[dict[str, Any]] = []
    for text in targets:
        try:
            report = _checked(text, options, settings, single=len(targets) == 1)
        except Exception as error:
            if len(targets) == 1:
                raise
            codes.append(report_error(error, Namespace(json=False, traceback=options.traceback), text))
            found.append({"model": text, "outcome": "error", "message": str(error)})
            continue
        uncovered = not (options.allow_uncovered or report.covered)
        gaps += uncovered
        codes.append(max(EXIT_CODES[report.outcome], DIFFERS if uncovered else OK))
        found.append({**report.to_dict(), "model": text, "onnx_file": None})
        for problem in report.problems():
            sys.stderr.write(f"dy2st: {text}: {problem}\n")
    if options.json:
        sys.stdout.write(json.dumps({"targets": found, "exit_code": max(codes)}, indent=2) + "\n")
    elif len(targets) > 1:
        equal = sum(each.get("outcome") == "equal" for each in found)
        covered = f"; {gaps} not covered" if gaps else ""
        sys.stdout.write(f"{equal} of {len(targets)} targets are equal to eager{covered}\n")
    return max(codes)


def _checked(text: str, options: Namespace, settings: Settings, *, single: bool) -> ParityReport:
    with progress(text, enabled=not options.json) as step, tempfile.TemporaryDirectory(prefix="dy2st-") as folder:
        step("importing")
        target = load_target(text)
        report = export_and_check(target, options, settings, Path(folder) / "model.onnx", step)
    if options.json:
        return report
    if single:
        print_report(report)
    else:
        sys.stdout.write(f"{text}: {summary(report)}{graph_facts(report)}\n")
        sys.stdout.writelines(f"  {line}\n" for line in path_lines(report))
        sys.stdout.flush()
    return report


def _targets(given: list[str]) -> list[str]:
    if not given:
        raise UsageError(
            "there is nothing to check", hint="name a target, or `targets` in [tool.dy2st] of pyproject.toml"
        )
    found: list[str] = []
    for text in given:
        if not text or not Path(text).is_dir():
            found.append(text)
            continue
        inside = targets_in(Path(text))
        if not inside:
            raise TargetError(f"{text}: no file in this folder defines both model and example_inputs")
        found.extend(inside)
    return found
