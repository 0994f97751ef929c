"""``dy2st check FILE.onnx``: the tests that lie beside a file, run without its model and without torch."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.cli.baselines import Comparison
from dy2st.cli.check import print_result
from dy2st.cli.console import progress
from dy2st.cli.definitions import failed
from dy2st.cli.failures import DIFFERS, EXIT_CODES, OK
from dy2st.cli.formats import Formats
from dy2st.cli.planning import as_options, options_for
from dy2st.cli.settings import load_settings
from dy2st.cli.sweeping import of_crash
from dy2st.errors import UsageError
from dy2st.report.run import TargetResult
from dy2st.sweep.forked import can_fork, forked
from dy2st.sweep.job import Answer, Job

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

# The options that are about a model.
_OF_MODELS = (
    "onnx input inputs opset opsets search save_inputs all_errors allow_specialize drop_guards state "
    "optional_outputs inputs_as random_inputs reproducer runtimes scheduler"
).split()


def check_files(options: Namespace) -> int:
    """Run the tests of each file; the exit code is the highest of theirs, as for models.

    Raises:
        UsageError: there are models among the files, or an option is for models.
    """
    models = [each for each in options.targets if not each.endswith(".onnx")]
    if models:
        raise UsageError(
            f"{options.targets[0]} and {models[0]} can't be checked by one command"
            if options.targets[0] != models[0]
            else f"{models[0]} and ONNX files can't be checked by one command",
            hint=f"{models[0]} --onnx FILE compares a model with a file",
        )
    given = [name for name in _OF_MODELS if getattr(options, name)]
    if given:
        name = f"--{given[0].replace('_', '-')}"
        raise UsageError(f"{name} is for a model, and {options.targets[0]} has its tests beside it")
    settings = load_settings(Path.cwd())
    formats = Formats(options)
    comparison = Comparison(options, settings)
    single = len(options.targets) == 1
    results: list[TargetResult] = []
    for file in dict.fromkeys(options.targets):
        job = Job(file, options_for(file, options, settings), about="" if single else file)
        result = comparison.judged(_alone(job, quiet=formats.takes_stdout))
        print_result(result, single=single, quiet=formats.takes_stdout)
        results.append(result)
    run = formats.write("check", comparison.finished(results))
    if not single and not formats.takes_stdout:
        sys.stdout.write(f"{run.verdict()}\n")
    return run.exit_code


def _alone(job: Job, *, quiet: bool) -> TargetResult:
    """The result of one file, in a process of its own where that can be forked: a crash is a finding."""
    if not can_fork():
        return _result(job, lambda _: None, quiet=quiet)
    told = forked(partial(_answer, job, quiet), limit=job.options.get("timeout"))
    answer = told if isinstance(told, Answer) else of_crash(job, told)
    return answer.result


def _answer(job: Job, quiet: bool, told: Callable[[str], None]) -> Answer:
    return Answer(_result(job, told, quiet=quiet))


def _result(job: Job, told: Callable[[str], None], *, quiet: bool) -> TargetResult:
    """The result of one file; what stops it is said on stderr, and is its result."""
    begun = time.perf_counter()
    options = as_options(job.options)
    with progress(job.target, enabled=not quiet) as shown:

        def step(text: str) -> None:
            told(text)
            shown(text)

        try:
            result = _replayed(job.target, options, step)
        except Exception as error:  # noqa: BLE001 - one file that fails does not stop the others
            result = failed(error, job.target, options, about=job.about)
    return replace(result, seconds=time.perf_counter() - begun)


def _replayed(file: str, options: Any, step: Callable[[str], None]) -> TargetResult:
    from dy2st.embedded import check_embedded

    report = check_embedded(
        file,
        rtol=options.rtol,
        atol=options.atol,
        levels=options.optimization_levels,
        providers=options.providers,
        progress=step,
    )
    uncovered = not (options.allow_uncovered or report.covered)
    return TargetResult(
        file,
        max(EXIT_CODES[report.outcome], DIFFERS if uncovered else OK),
        report,
        uncovered_fails=not options.allow_uncovered,
    )
