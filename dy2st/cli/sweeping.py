"""Many targets at once: their results in order, from processes of their own."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from dy2st.cli.console import ProgressLine
from dy2st.cli.definitions import failed
from dy2st.cli.planning import as_options
from dy2st.cli.shares import divided, joined
from dy2st.errors import Dy2stError, Location, LostProcessError, TimeLimitError
from dy2st.source.user_frames import is_own
from dy2st.sweep.cache import Cache, default_folder
from dy2st.sweep.cluster import Cluster
from dy2st.sweep.forked import can_fork, forked
from dy2st.sweep.job import Answer
from dy2st.sweep.pool import Pool, cores
from dy2st.sweep.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dy2st.report.run import TargetResult
    from dy2st.sweep.job import Death, Job
    from dy2st.sweep.pool import Steps

WORK = "dy2st.cli.checked:worker_result"
# What faulthandler writes for a frame.
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)


@dataclass(frozen=True)
class Processes:
    """Where targets are checked.

    In ``count`` processes of this machine, by default one for each processor; or by the workers of the Dask cluster
    whose ``scheduler`` has this address.
    """

    count: int | None = None
    scheduler: str | None = None

    def made_for(self, jobs: Sequence[object]) -> Pool | Cluster:
        """The processes for some jobs; there are never more than jobs.

        Raises:
            ClusterError: the cluster can't be used.
        """
        if self.scheduler is None or not jobs:
            return Pool(max(1, min(self.count or cores(), len(jobs))), WORK)
        return Cluster(self.scheduler, WORK)


def swept(jobs: Sequence[Job], processes: Processes, *, caching: bool, quiet: bool) -> Iterator[TargetResult]:
    """The results of all jobs in their order, each as soon as those before it are there.

    What a target has printed is written to stderr before its result is given. With ``caching`` results of earlier runs
    count, and new ones are kept.

    Raises:
        ClusterError: the cluster can't be used.
    """
    cache = _cache() if caching else None
    found = {} if cache is None else {number: cache.look_up(job) for number, job in enumerate(jobs)}
    known = [(number, answer) for number, answer in found.items() if answer is not None]
    new = [(number, job) for number, job in enumerate(jobs) if found.get(number) is None]
    done: dict[int, Answer] = {}
    following = 0
    with ProgressLine(enabled=not quiet) as line, processes.made_for(new) as pool:
        parts = {number: divided(job, pool.idle(len(new))) for number, job in new}
        units = [(number, part) for number, each in parts.items() for part in range(len(each))]
        come: dict[int, dict[int, Answer]] = {number: {} for number in parts}

        def shown(steps: Steps) -> None:
            doing = {jobs[units[unit][0]].target: what for unit, what in sorted(steps.items())}
            told = ", ".join(f"{target}: {what}" for target, what in doing.items())
            line.show(f"{len(done)} of {len(jobs)} done; {told}")

        def answers() -> Iterator[tuple[int, Answer]]:
            for unit, told in pool.run(
                ((unit, parts[number][part]) for unit, (number, part) in enumerate(units)), shown
            ):
                number, part = units[unit]
                come[number][part] = told if isinstance(told, Answer) else of_death(jobs[number], told)
                if len(come[number]) < len(parts[number]):
                    continue
                answer = joined(parts[number], [each for _, each in sorted(come[number].items())])
                if cache is not None:
                    cache.keep(jobs[number], answer)
                yield number, answer

        for number, answer in chain(known, answers()):
            done[number] = answer
            while following in done:
                line.clear()
                sys.stderr.write(done[following].said)
                sys.stderr.flush()
                yield done[following].result
                following += 1
    if cache is not None and new:
        cache.prune()


# What gives a job's result; it is told a function for its steps, and whether what stops the target is its result.
Run = Callable[[Callable[[str], None], bool], "TargetResult"]


def alone(job: Job, run: Run, *, caching: bool, as_result: bool) -> TargetResult:
    """The result of a single job that ``run`` gives; with ``caching`` as in :func:`swept`.

    Where this process can be forked, that is done: a crash is the verdict of the target, and what stops it is its
    result. Otherwise it runs in this process, and what stops it is raised unless ``as_result``.

    What a run has printed or warned of is not printed again where its result is used again: one with warnings, and
    one that has failed, is not kept.
    """
    cache = _cache() if caching else None
    known = None if cache is None else cache.look_up(job)
    if known is not None and known.result.report is not None and not known.said:
        return known.result
    if not can_fork():
        answer = _watched(partial(run, lambda _: None, as_result), watching=caching)
    else:
        told = forked(
            lambda shown: _watched(partial(run, shown, True), watching=caching),
            limit=job.options.get("timeout"),
        )
        answer = told if isinstance(told, Answer) else of_crash(job, told)
    if cache is not None and answer.result.report is not None:
        cache.keep(job, answer)
    return answer.result


def _watched(run: Callable[[], TargetResult], *, watching: bool) -> Answer:
    """The result, with what it depends on if it is to be kept."""
    if not watching:
        return Answer(run())
    warned = False
    show = warnings.showwarning

    def shown(*args: Any, **kwargs: Any) -> None:
        nonlocal warned
        warned = True
        show(*args, **kwargs)

    import dy2st.cli.checked  # noqa: F401 - what the command needs itself is none of the target's

    with Watch() as watch:
        warnings.showwarning = shown
        try:
            result = run()
        finally:
            warnings.showwarning = show
        files, unsure = watch.found()
    return Answer(result, files=files, unsure=unsure or ("it has warned" if warned else ""))


def of_crash(job: Job, death: Death) -> Answer:
    """The result of a single target whose process has died. The trace of a crash is shown if it is asked for."""
    answer = of_death(job, death)
    trace = _shortened(death.said) if job.options.get("traceback") else ""
    sys.stderr.write(f"{trace}{answer.said.removeprefix(_shortened(death.said))}")
    return answer


def _cache() -> Cache | None:
    def warn(text: str) -> None:
        sys.stderr.write(f"dy2st: warning: {text}\n")

    try:
        return Cache(default_folder(), warn)
    except OSError as error:
        warn(f"results can't be kept: {error.strerror}")
        return None


def of_death(job: Job, death: Death) -> Answer:
    """The result of a target whose process has died."""
    limit = job.options.get("timeout")
    error: Dy2stError
    if death.timed_out:
        what = f"it was not done in {limit:g} s, and was {death.step}"
        error = TimeLimitError(what, hint="--timeout with more seconds")
    else:
        what = f"the process that checked {'it' if job.about else job.target} {death.how} while it was {death.step}"
        fewer = "fewer --jobs" if job.about else "a smaller model or smaller inputs"
        hint = f"{fewer}, if the memory was not enough" if "SIGKILL" in death.how else ""
        error = LostProcessError(what, hint=hint, location=_crashed_at(death.said))
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        result = failed(error, job.target, as_options(job.options), about=job.about)
    return Answer(replace(result, seconds=death.seconds), said=_shortened(death.said) + told.getvalue())


def _crashed_at(said: str) -> Location | None:
    """The user's innermost line, if the process could still tell where it was."""
    trace = said.rpartition("Fatal Python error")[2]
    found = ((file, int(line)) for file, line in _FRAME.findall(trace) if is_own(file))
    place = next(found, None)
    return None if place is None else Location(*place)


def _shortened(said: str) -> str:
    """Without the list of all extension modules that ends the trace of a crash."""
    return re.sub(r"\nExtension modules: .*\n?\Z", "", said)
