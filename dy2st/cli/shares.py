"""One target divided among several processes: each compares some of its inputs, on some of its opsets.

All of them export the target, from all inputs, so that they compare the same file; the answers are put together to the
one that a single process would have given. Worth it only where processes would have nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from dy2st.cli.failures import DIFFERS, EXIT_CODES, OK
from dy2st.report.coverage import merged
from dy2st.report.file_arms import blamed_inputs, merged_arms
from dy2st.sweep.job import Answer

if TYPE_CHECKING:
    from dy2st.report.model import InputResult
    from dy2st.report.parity_report import ParityReport
    from dy2st.sweep.job import Job

# More processes than these gain nothing: each has to export the target.
MOST = 8
OPTION = "share"


@dataclass(frozen=True)
class Share:
    """The inputs that are ``first``, ``first + step``, …, and the opsets likewise.

    What there is besides opsets (levels of optimisation) belongs to those with the first opset.
    """

    first: int = 0
    step: int = 1
    first_opset: int = 0
    step_opsets: int = 1

    @classmethod
    def of(cls, plain: Sequence[int] | None) -> Share:
        """Of the numbers in a job's options, or all if there are none."""
        return cls() if plain is None else cls(*plain)


def divided(job: Job, count: int) -> list[Job]:
    """The job in about so many parts, or alone: what depends on all inputs at once can't be divided."""
    options = job.options
    if count < 2 or job.listings or options.get("search") is not None or options.get("providers"):  # noqa: PLR2004
        return [job]
    opsets = max(1, min(count, len(options.get("opsets") or ())))
    sets = max(1, min(count, MOST) // opsets)
    places = [(i, sets, k, opsets) for i in range(sets) for k in range(opsets)]
    return [replace(job, options={**options, OPTION: list(each)}) for each in places]


def joined(jobs: Sequence[Job], answers: Sequence[Answer]) -> Answer:
    """The answer of the whole, of those of its parts in the order of :func:`divided`.

    Where a part has failed, the first such is the answer.
    """
    failed = next((each for each in answers if each.result.report is None), None)
    if failed is not None or len(answers) == 1:
        return failed or answers[0]
    shares = [Share.of(job.options[OPTION]) for job in jobs]
    reports = [each.result.report for each in answers]
    columns: dict[int, list[ParityReport]] = {}
    for share, report in zip(shares, reports, strict=True):
        assert report is not None
        columns.setdefault(share.first, []).append(report)
    opsets = [str(each) for each in jobs[0].options.get("opsets") or ()]
    inputs = zip_longest(*(_beside(each, opsets) for each in columns.values()))
    rows = _first_culprit([each for row in inputs for each in row if each is not None])
    arms = merged_arms(each.arms for each in reports if each is not None)
    first = columns[0][0]
    sites = merged(site for report in reports if report is not None for site in report.paths)
    report = replace(
        first,
        inputs=rows,
        paths=tuple(replace(site, taken=tuple(way for way in site.ways if way in site.taken)) for site in sites),
        paths_problem=next((each.paths_problem for each in reports if each is not None and each.paths_problem), ""),
        arms=arms,
        arms_problem=next((each.arms_problem for each in reports if each is not None and each.arms_problem), ""),
        blame=blamed_inputs(arms, rows),
    )
    result = answers[0].result
    uncovered = result.uncovered_fails and not report.covered
    return Answer(
        replace(
            result,
            report=report,
            exit_code=max(EXIT_CODES[report.outcome], DIFFERS if uncovered else OK),
            seconds=max(each.result.seconds or 0.0 for each in answers),
        ),
        said=answers[0].said,
        files=tuple(sorted({path for each in answers for path in each.files})),
        unsure=next((each.unsure for each in answers if each.unsure), ""),
    )


def _beside(reports: Sequence[ParityReport], opsets: Sequence[str]) -> list[InputResult]:
    """The results of the same inputs on different opsets as one for each input, with the stages in their order."""
    names = [f"opset {each}" for each in opsets]
    found = []
    for results in zip(*(each.inputs for each in reports), strict=True):
        stages = {stage.stage: stage for result in reversed(results) for stage in result.stages}
        order = [*(name for name in stages if name not in names), *(name for name in names if name in stages)]
        problem = next((each.problem for each in results if each.problem), "")
        found.append(
            replace(results[0], stages=() if problem else tuple(map(stages.__getitem__, order)), problem=problem)
        )
    return found


def _first_culprit(results: Sequence[InputResult]) -> tuple[InputResult, ...]:
    """The results with one culprit, as one process would have looked for: that of the first input that has any."""
    found = []
    looked = False
    for result in results:
        stages = tuple(replace(stage, culprit=None) if looked else stage for stage in result.stages)
        looked = looked or any(stage.culprit is not None for stage in stages)
        found.append(replace(result, stages=stages))
    return tuple(found)
