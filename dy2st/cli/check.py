"""``dy2st check``: convert one target or many, compare each with eager, and leave no file."""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli.baselines import Comparison
from dy2st.cli.console import graph_facts, print_report, progress
from dy2st.cli.definitions import failed
from dy2st.cli.failures import INTERRUPTED
from dy2st.cli.formats import Formats
from dy2st.cli.planning import as_options, planned
from dy2st.cli.reproducing import Reproducer, say
from dy2st.cli.settings import load_settings
from dy2st.cli.sweeping import Processes, alone, swept
from dy2st.errors import LostProcessError
from dy2st.errors.places import from_here
from dy2st.report.parity_report import path_lines, summary
from dy2st.report.run import Judgement

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from dy2st.report.run import TargetResult
    from dy2st.sweep.job import Job


def check(options: Namespace) -> int:
    """Check every target; the exit code is the highest of theirs, and one that fails does not stop the others."""
    settings = load_settings(Path.cwd())
    formats = Formats(options)
    jobs = planned(options, settings, listings=formats.has("html"))
    comparison = Comparison(options, settings)
    caching = settings.cache and not options.no_cache
    reproducer = None if options.reproducer is None else Reproducer(options.reproducer, jobs)
    if len(jobs) == 1 and (reproducer is not None or (options.jobs is None and options.scheduler is None)):
        here = partial(_here, jobs[0], formats.takes_stdout)
        as_result = bool(formats) or comparison.is_made
        result = comparison.judged(alone(jobs[0], here, caching=caching and reproducer is None, as_result=as_result))
        print_result(result, single=True, quiet=formats.takes_stdout)
        if reproducer is not None:
            with progress(jobs[0].target, enabled=not formats.takes_stdout) as step:
                line = reproducer.write(result, step)
            say(line, quiet=formats.takes_stdout)
        return formats.write("check", comparison.finished([result])).exit_code
    results: list[TargetResult] = []
    interrupted = False
    try:
        processes = Processes(options.jobs or settings.jobs, options.scheduler)
        for result in swept(jobs, processes, caching=caching, quiet=formats.takes_stdout):
            results.append(comparison.judged(result))
            print_result(results[-1], single=len(jobs) == 1, quiet=formats.takes_stdout)
    except KeyboardInterrupt:
        if not results:
            raise
        interrupted = True
    left = len(jobs) - len(results)
    run = formats.write("check", results if left else comparison.finished(results), left=left)
    if len(jobs) > 1 and not formats.takes_stdout:
        sys.stdout.write(f"{run.verdict()}\n")
    if interrupted:
        sys.stderr.write("dy2st: interrupted\n")
        return INTERRUPTED
    return run.exit_code


def _here(job: Job, quiet: bool, told: Callable[[str], None], as_result: bool) -> TargetResult:
    """One target alone, on this terminal: a debugger may be used in it. What stops it is raised, or is its result."""
    from dy2st.cli.checked import checked, checked_or_failed
    from dy2st.source.user_frames import user_location

    with progress(job.target, enabled=not quiet) as shown:

        def step(text: str) -> None:
            told(text)
            shown(text)

        try:
            return checked_or_failed(job, step) if as_result else checked(job, step)
        except SystemExit as stop:
            if stop.code == 128 + signal.SIGTERM:  # it was us that were told to end
                raise
            place = user_location(stop.__traceback__)
            error = LostProcessError(f"the target's own code ends the process: SystemExit({stop.code})", location=place)
            if not as_result:
                raise error from None
            return failed(error, job.target, as_options(job.options), about=job.about)


def _beside_baseline(result: TargetResult) -> list[str]:
    judgement = result.judgement or Judgement()
    about = "" if result.report is not None else f"{result.target}: "
    known = [f"{about}known to fail: the baseline has it"] if judgement.known else []
    worse = [f"{about}worse than the baseline: {line}" for line in judgement.worse]
    return known + worse + [f"{about}better than the baseline: no longer {line}" for line in judgement.better]


def print_result(result: TargetResult, *, single: bool, quiet: bool) -> None:
    """A target's result on stdout, and on stderr the problems that it does not tell, or that are of the inputs."""
    report = result.report
    if not quiet:
        if report is not None and single:
            if result.cached:
                sys.stdout.write("cached: nothing has changed since this was found (--no-cache checks anew)\n")
            print_report(report)
        elif report is not None:
            cached = " (cached)" if result.cached else ""
            sys.stdout.write(f"{result.target}: {summary(report)}{graph_facts(report)}{cached}\n")
            sys.stdout.writelines(f"  {line}\n" for line in path_lines(report))
        elif not single:
            cached = " (cached)" if result.cached else ""
            codes = ", ".join(dict.fromkeys(failure.code or failure.kind for failure in result.failures))
            sys.stdout.write(f"{result.target}: could not be checked: {codes}{cached}\n")
        sys.stdout.writelines(f"{'' if single else '  '}{line}\n" for line in _beside_baseline(result))
        sys.stdout.flush()
    if report is None or (single and not quiet and report.outcome != "unusable"):
        return  # it is said: below the table
    for problem in (*report.problems(), *report.changed):
        sys.stderr.write(f"dy2st: {result.target}: {from_here(problem)}\n")
