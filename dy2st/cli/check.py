"""``dy2st check``: convert one target or many, compare each with eager, and leave no file."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli.console import graph_facts, print_report, progress
from dy2st.cli.convert import export_and_check
from dy2st.cli.definitions import definition_of, failed
from dy2st.cli.failures import DIFFERS, EXIT_CODES, OK
from dy2st.cli.formats import Formats
from dy2st.cli.settings import load_settings
from dy2st.cli.target import load_target, targets_in
from dy2st.cli.time_limit import limited
from dy2st.errors import TargetError, UsageError
from dy2st.parity.listings import source_listings
from dy2st.report.run import TargetResult
from dy2st.report.text import path_lines, summary

if TYPE_CHECKING:
    from argparse import Namespace

    from dy2st.cli.settings import Settings
    from dy2st.report.model import ParityReport


def check(options: Namespace) -> int:
    """Check every target; the exit code is the highest of theirs, and one that fails does not stop the others."""
    settings = load_settings(Path.cwd())
    formats = Formats(options)
    targets = _targets(options.targets or list(settings.targets))
    single = len(targets) == 1
    results: list[TargetResult] = []
    for text in targets:
        begun = time.perf_counter()
        try:
            result = _checked(text, options, settings, formats)
        except Exception as error:
            if single and not formats:
                raise
            result = failed(error, text, options, about="" if single else text)
        results.append(replace(result, seconds=time.perf_counter() - begun))
        if result.report is not None:
            _print(text, result.report, single=single, quiet=formats.takes_stdout)
    run = formats.write("check", results)
    if not (single or formats.takes_stdout):
        sys.stdout.write(f"{run.verdict()}\n")
    return run.exit_code


def _checked(text: str, options: Namespace, settings: Settings, formats: Formats) -> TargetResult:
    quiet = formats.takes_stdout
    with (
        progress(text, enabled=not quiet) as shown,
        tempfile.TemporaryDirectory(prefix="dy2st-") as folder,
        limited(options.timeout, shown) as step,
    ):
        step("importing")
        target = load_target(text)
        file = Path(folder) / "model.onnx"
        report = export_and_check(target, options, settings, file, step)
        listings = source_listings(target.model, report.paths, file) if formats.has("html") else ()
    uncovered = not (options.allow_uncovered or report.covered)
    return TargetResult(
        text,
        max(EXIT_CODES[report.outcome], DIFFERS if uncovered else OK),
        replace(report, onnx_file=None),
        definition=definition_of(target),
        uncovered_fails=not options.allow_uncovered,
        listings=listings,
    )


def _print(text: str, report: ParityReport, *, single: bool, quiet: bool) -> None:
    if single and not quiet:
        print_report(report)
    elif not quiet:
        sys.stdout.write(f"{text}: {summary(report)}{graph_facts(report)}\n")
        sys.stdout.writelines(f"  {line}\n" for line in path_lines(report))
        sys.stdout.flush()
    for problem in report.problems():
        sys.stderr.write(f"dy2st: {text}: {problem}\n")


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
