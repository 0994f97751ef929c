"""What a run has found, one by one: what alerts, annotations and lists of problems are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from dy2st.errors import Location
from dy2st.report.file_arms import untaken
from dy2st.report.model import never_compared

if TYPE_CHECKING:
    from dy2st.report.model import Culprit, InputResult, StageResult
    from dy2st.report.parity_report import ParityReport
    from dy2st.report.run import Failure, Run, TargetResult

Level = Literal["error", "warning", "note"]

DIFFERS, UNUSABLE = "D2S501", "D2S502"
UNCOVERED, FIXED, DROPPED, DEFECT = "uncovered-path", "fixed-size", "dropped-guard", "internal-error"
CHANGED = "changed-file"
WORSE, BETTER = "worse-than-baseline", "better-than-baseline"

# What is no error of its own and so has no page: a name, and what it means.
OTHER_RULES = {
    UNCOVERED: (
        "UncoveredPath",
        "No example input takes an arm of a staged branch, or a number of trips of a staged loop.",
        "A check compares only what its inputs reach. Give an input that takes this path.",
    ),
    FIXED: (
        "FixedSize",
        "A size that is declared dynamic is fixed in the file, as the user has allowed.",
        "The file takes only the size that it says here. The option --allow-specialize allowed it for this line.",
    ),
    DROPPED: (
        "DroppedGuard",
        "Eager may raise here and the file does not, as the user has allowed.",
        "Where eager raises, the file goes on with a value that means nothing: its guard was dropped on request.",
    ),
    CHANGED: (
        "ChangedFile",
        "The ONNX file is not as it was when the tests beside it were recorded.",
        "What it computes is compared all the same. Record the tests anew with --embed-tests if the change was meant.",
    ),
    WORSE: (
        "WorseThanBaseline",
        "A target became worse than the baseline has it.",
        "It fails where it did not, misses a path, has other outputs, a larger error, or a graph that grew by a tenth.",
    ),
    BETTER: (
        "BetterThanBaseline",
        "Something that the baseline knows to be wrong is right now.",
        "The option --update-baseline takes it out of the baseline.",
    ),
    DEFECT: (
        "InternalError",
        "dy2st itself failed: a defect of dy2st, not of the model.",
        "The option --traceback shows where it failed.",
    ),
}

# The worst first: an order for where not all can be shown.
_RANKS = {DEFECT: 0, DIFFERS: 2, UNUSABLE: 3, UNCOVERED: 4, FIXED: 5, DROPPED: 6, CHANGED: 5, WORSE: 2, BETTER: 7}
_RANK_OF_ERRORS = 1


@dataclass(frozen=True)
class Finding:
    """One thing to tell the user.

    ``code`` is an error's, or a key of ``OTHER_RULES``; ``message`` is one line; ``subject`` says what it is about in
    words that stay the same from run to run; ``size`` orders findings of a kind (the larger the worse).
    """

    level: Level
    code: str
    target: str
    message: str
    hint: str = ""
    location: Location | None = None
    subject: str = ""
    size: float = 0.0

    @property
    def title(self) -> str:
        """The code, and whose it is."""
        return f"{self.code}: {self.target}"


def findings(run: Run) -> list[Finding]:
    """All findings of a run, the worst first: failures, differences, unusable inputs, uncovered paths, fixed sizes."""
    found = [each for target in run.targets for each in _beside_baseline(target)]
    return sorted(found, key=lambda each: (_RANKS.get(each.code, _RANK_OF_ERRORS), -each.size))


def _beside_baseline(target: TargetResult) -> Iterator[Finding]:
    """What is known is a note; what is worse is an error of its own."""
    for each in _of_target(target):
        yield replace(each, level="note", message=f"known: {each.message}") if target.is_known else each
    if target.judgement is not None:
        place = target.definition
        for line in target.judgement.worse:
            yield Finding("error", WORSE, target.target, line, location=place, subject=line)
        for line in target.judgement.better:
            message = f"no longer: {line}"
            yield Finding("note", BETTER, target.target, message, "--update-baseline", location=place, subject=line)


def _of_target(target: TargetResult) -> Iterator[Finding]:
    for failure in target.failures:
        yield _of_failure(failure, target)
    if target.report is None:
        return
    yield from _of_report(target.report, target)
    level: Level = "error" if target.uncovered_fails else "warning"
    for site in target.report.paths:
        where = Location(site.file, site.line, site.column, site.source)
        for way, line in site.missed():
            message = line.removeprefix(f"{where}: ")
            yield Finding(
                level, UNCOVERED, target.target, message, location=where, subject=f"{site.kind} {site.code} {way}"
            )
    for line in never_compared(target.report.inputs):
        yield Finding(level, UNCOVERED, target.target, line, location=target.definition, subject=line)
    copies: Counter[str] = Counter()
    for arm, way in untaken(target.report.arms, target.report.paths):
        line_of = None if arm.line is None else Location(arm.file, arm.line, arm.column, arm.source)
        # Nodes may have other names in another file: copies of a line are counted.
        told = f"{arm.op} {arm.source} {way}"
        copies[told] += 1
        told += f" ({copies[told]})" if copies[told] > 1 else ""
        yield Finding(
            level,
            UNCOVERED,
            target.target,
            arm.missed([way])[0],
            location=line_of or target.definition,
            subject=f"file: {told}",
        )
    for subject, problem in (("paths", target.report.paths_problem), ("arms", target.report.arms_problem)):
        if problem:
            yield Finding(level, UNCOVERED, target.target, problem, location=target.definition, subject=subject)
    for line in target.report.changed:
        yield Finding("warning", CHANGED, target.target, line, location=target.definition, subject=line)
    allowed = ((FIXED, "fixed", target.report.specialized), (DROPPED, "dropped", target.report.dropped_guards))
    for code, word, texts in allowed:
        for text in texts:
            place, _, what = text.partition(": ")
            where_allowed = _place(place) or target.definition
            yield Finding(
                "note", code, target.target, f"{word} as allowed: {what}", location=where_allowed, subject=what
            )


def _of_failure(failure: Failure, target: TargetResult) -> Finding:
    return Finding(
        "error",
        failure.code or DEFECT,
        target.target,
        failure.what,
        failure.hint,
        failure.location or target.definition,
        subject=failure.what,
    )


def _of_report(report: ParityReport, target: TargetResult) -> Iterator[Finding]:
    """One for each output of a stage that differs, whatever the number of inputs: the worst of them is shown."""
    groups: dict[tuple[str, ...], list[tuple[InputResult, StageResult, Finding]]] = {}
    for result in report.inputs:
        where = f"input {result.name} ({result.description})"
        if result.problem:
            message = f"{where}: {result.problem}"
            begins = target.definition
            yield Finding("error", UNUSABLE, target.target, message, location=begins, subject=f"input {result.name}")
        for stage in result.stages:
            culprit = stage.culprit
            place = Location(culprit.file, culprit.line) if culprit else target.definition
            for key, text in _differences(stage):
                found = Finding(
                    "error",
                    DIFFERS,
                    target.target,
                    f"{where}: {stage.stage}{text}",
                    location=place,
                    subject=" ".join(key),
                    size=stage.max_abs,
                )
                groups.setdefault(key, []).append((result, stage, found))
    blame = f" ({report.blame})" if report.blame else ""
    for group in groups.values():
        worst = max(group, key=lambda each: each[1].max_abs)
        others = [result.name for result, *_ in group if result is not worst[0]]
        more = f" (and on {len(others)} more input{'' if len(others) == 1 else 's'}: {_few(others)})" if others else ""
        yield replace(worst[2], message=worst[2].message + more + blame)


def _differences(stage: StageResult) -> Iterator[tuple[tuple[str, ...], str]]:
    if stage.status == "error":
        yield (stage.stage, "failed"), f" failed: {stage.message}"
        return
    cause = f" ({stage.message})" if stage.message else ""
    cause += f"; first at line {_first(stage.culprit)}" if stage.culprit else ""
    for each in stage.differences:
        yield (stage.stage, each.output, each.kind), f": {each.output}: {each.message}{cause}"


def _first(culprit: Culprit) -> str:
    """Where it begins, without the file, which the finding's place has."""
    return str(culprit).removeprefix(f"{culprit.file}:")


def _few(names: list[str]) -> str:
    shown = 5
    return ", ".join(names[:shown]) + (", …" if len(names) > shown else "")


def _place(text: str) -> Location | None:
    """``FILE:LINE`` as a location."""
    file, _, line = text.rpartition(":")
    return Location(file, int(line)) if file and line.isdecimal() else None
