"""The report of one check: what it holds, what follows from that, and how it reads as plain text.

As text it is a table with a line per set of inputs, the differences, and a closing line.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from dy2st.errors import ParityError, UnusableInputError
from dy2st.errors.places import from_here
from dy2st.report.file_arms import FileSite, untaken_lines
from dy2st.report.model import InputResult, Outcome, PathSite, Tolerance, never_compared

CONTROL_FLOW = ("If", "Loop", "Scan")
_WIDEST_DESCRIPTION = 60
_WIDEST_CODE = 70


@dataclass(frozen=True)
class ParityReport:
    """Eager against each stage, on every set of inputs.

    ``tolerances`` are those applied, by dtype; ``versions`` those of the libraries that took part; ``graph`` counts
    the nodes of the ONNX file by operator, subgraphs included. ``specialized`` lists the dynamic sizes that the user
    has allowed to be fixed: the line, and what holds in the file; ``dropped_guards`` the places at which eager may
    raise and the file does not, likewise. ``paths`` are the staged branches and loops, with
    what the inputs took of them; ``paths_problem`` says why they aren't known, if so. ``searched`` is what a search
    for inputs did. Of tests that lay beside the file, ``recorded`` has the versions of what took part when they were
    made, and ``changed`` says what of the file is not as it was then. ``arms`` are the branches and loops of the file
    itself, as ``paths`` are those of the source, and ``arms_problem`` says why they aren't known; ``blame`` is the arm
    that tells the inputs that differ from the others, if there is one.
    """

    model: str
    inputs: tuple[InputResult, ...]
    onnx_file: str | None = None
    tolerances: dict[str, Tolerance] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    graph: dict[str, int] = field(default_factory=dict)
    opset: int | None = None
    specialized: tuple[str, ...] = ()
    dropped_guards: tuple[str, ...] = ()
    paths: tuple[PathSite, ...] = ()
    paths_problem: str = ""
    searched: str = ""
    recorded: dict[str, str] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    arms: tuple[FileSite, ...] = ()
    arms_problem: str = ""
    blame: str = ""

    @property
    def uncovered(self) -> list[str]:
        """One line for each output without a value, and each way of a branch or loop that no input takes.

        Or why the ways aren't known. A way of the file is told where those of the source don't tell it already.
        """
        problems = [each for each in (self.paths_problem, self.arms_problem) if each]
        lines = [line for site in self.paths for _, line in site.missed()]
        return never_compared(self.inputs) + problems + lines + untaken_lines(self.arms, self.paths)

    @property
    def covered(self) -> bool:
        """True if each output has a value on some input, and the inputs take every way of the branches and loops.

        Ways that are accepted in the source are left aside.
        """
        return not self.uncovered

    @property
    def outcome(self) -> Outcome:
        """The worst of the inputs': ``differs`` before ``unusable`` before ``equal``."""
        outcomes = {result.outcome for result in self.inputs}
        if "differs" in outcomes:
            return "differs"
        return "equal" if outcomes == {"equal"} else "unusable"

    @property
    def ok(self) -> bool:
        """True if every stage is equal to eager on every input, and there was at least one."""
        return self.outcome == "equal"

    @property
    def first_to_differ(self) -> str:
        """The stage that comes first among those that differ from eager or fail, on any input; empty if none does."""
        order = [stage.stage for result in self.inputs for stage in result.stages if stage.status != "equal"]
        stages = [stage.stage for result in self.inputs for stage in result.stages]
        return min(order, key=stages.index, default="")

    def raise_if_different(self) -> None:
        """Do nothing if the report is ok.

        Raises:
            ParityError: a stage differs from eager; the message is the first difference.
            UnusableInputError: nothing differs, but an input is unusable.
        """
        if not self.ok:
            kind = ParityError if self.outcome == "differs" else UnusableInputError
            raise kind(self.problems()[0])

    def problems(self) -> list[str]:
        """One line for each input with a problem and each stage that is not equal to eager."""
        lines = [] if self.inputs else [f"{self.model}: there were no inputs to compare"]
        for result in self.inputs:
            where = f"input {result.name} ({result.description})"
            if result.problem:
                lines.append(f"{where}: {result.problem}")
            for stage in result.stages:
                if stage.status == "error":
                    lines.append(f"{where}: {stage.stage} failed: {stage.message}")
                elif stage.message:
                    lines.append(f"{where}: {stage.stage}: {stage.message}")
                lines.extend(f"{where}: {stage.stage}: {d.output}: {d.message}" for d in stage.differences)
                if stage.culprit is not None:
                    lines.append(f"{where}: {stage.stage}: it begins at {stage.culprit}")
        lines += [self.blame] if self.blame else []
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The report as dicts, lists and numbers; numbers that JSON lacks (NaN, infinity) become strings."""
        plain = {"outcome": self.outcome, **asdict(self)}
        plain["uncovered"] = self.uncovered
        plain["covered"] = self.covered
        plain["first_to_differ"] = self.first_to_differ
        for result, source in zip(plain["inputs"], self.inputs, strict=True):
            result["outcome"] = source.outcome
        json_safe: dict[str, Any] = _json_safe(plain)
        return json_safe

    def to_json(self, *, indent: int | None = 2) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __str__(self) -> str:
        return render_text(self)


def header(report: ParityReport) -> list[str]:
    """The column titles: the input, each stage, the largest absolute difference."""
    stages = next((result.stages for result in report.inputs if result.stages), ())
    return ["input", "", *(stage.stage for stage in stages), "largest difference"]


def row(result: InputResult, columns: int) -> list[str]:
    """The cells of one input, as many as the header has."""
    description = result.description
    if len(description) > _WIDEST_DESCRIPTION:
        description = description[: _WIDEST_DESCRIPTION - 1] + "…"
    if result.problem:
        return [result.name, description, "unusable", *[""] * (columns - 3)]
    if result.raises:
        statuses = ("raises" if stage.status == "equal" else stage.status for stage in result.stages)
        return [result.name, description, *statuses, ""]
    largest = max((stage.max_abs for stage in result.stages), default=0.0)
    return [result.name, description, *(stage.status for stage in result.stages), f"{largest:.2g}"]


def summary(report: ParityReport) -> str:
    """The closing line: on how many inputs the model is equal to eager."""
    total = len(report.inputs)
    equal = sum(result.outcome == "equal" for result in report.inputs)
    plural = "" if total == 1 else "s"
    if report.ok:
        return f"equal to eager on {'the one' if total == 1 else f'all {total}'} input{plural}"
    return f"{report.outcome}: equal to eager on {equal} of {total} input{plural}"


def graph_line(report: ParityReport) -> str:
    """What the ONNX file holds, for instance ``opset 18, 14 nodes: 1 If, 1 Loop``; empty without a file."""
    if not report.graph:
        return ""
    nodes = sum(report.graph.values())
    control = [f"{report.graph[kind]} {kind}" for kind in CONTROL_FLOW if report.graph.get(kind)]
    tail = f", with {' and '.join(control)}" if control else ""
    return f"opset {report.opset}, {nodes} node{'' if nodes == 1 else 's'}{tail}"


def fixed_lines(report: ParityReport) -> list[str]:
    """What the user has allowed: dynamic sizes that are fixed, and tests that are not made."""
    fixed = [f"fixed as allowed at {from_here(specialized)}" for specialized in report.specialized]
    return fixed + [f"dropped as allowed: {from_here(dropped)}" for dropped in report.dropped_guards]


def recorded_lines(report: ParityReport) -> list[str]:
    """Under what the tests beside the file were made, and what of the file is another now."""
    libraries = [f"{name} {number}" for name, number in report.recorded.items() if name != "platform"]
    machine = f" on {report.recorded['platform']}" if "platform" in report.recorded else ""
    recorded = [f"recorded with {', '.join(libraries)}{machine}"] if report.recorded else []
    return recorded + [f"changed: {line}" for line in report.changed]


def widened_lines(report: ParityReport) -> list[str]:
    """Where a stage is equal within a tolerance that was scaled by the terms of the model's largest sum."""
    return [
        f"input {result.name}: {stage.stage} is equal within the tolerance of a sum of {stage.terms:,} terms"
        for result in report.inputs
        for stage in result.stages
        if stage.terms
    ] + [
        f"input {result.name}: {stage.stage} is equal within what rounding changes in eager itself "
        f"({stage.rounding:.2g} apart)"
        for result in report.inputs
        for stage in result.stages
        if stage.rounding
    ]


def coverage_lines(report: ParityReport) -> list[str]:
    """The staged branches and loops line by line of the source, file by file, each with the ways that inputs took."""
    lines: list[str] = []
    labels = [f"  {site.label}" if site.kind in ("and", "or") else site.label for site in report.paths]
    widest = max(map(len, labels), default=0)
    file = None
    for site, label in zip(report.paths, labels, strict=True):
        if site.file != file:
            file = site.file
            lines.append(f"paths of {from_here(file)}")
        ways = ", ".join(site.taken) or "none"
        accepted = [way for way in site.accepted if way not in site.taken]
        ways += f"; accepted: {', '.join(accepted)}" if accepted else ""
        ways += f"; never: {', '.join(never(site))}" if site.uncovered else ""
        code = label if len(label) <= _WIDEST_CODE else label[: _WIDEST_CODE - 1] + "…"
        lines.append(f"  {site.line:>4}  {code.ljust(min(widest, _WIDEST_CODE))}  {ways}")
    return lines


def never(site: PathSite) -> list[str]:
    """The ways that were never taken; of several branches on one line, which of them did not take it."""
    return [
        f"{way} ({'; '.join(names)})" if (names := [name for name in site.missed_in(way) if name]) else way
        for way in site.uncovered
    ]


def stage_lines(report: ParityReport) -> list[str]:
    """Which stage is the first that differs from eager, if one does and there are several."""
    first, several = report.first_to_differ, any(len(result.stages) > 1 for result in report.inputs)
    return [f"the first stage that differs from eager: {first}"] if first and several else []


def path_lines(report: ParityReport) -> list[str]:
    """What a search did, and the ways of staged branches and loops that no input takes."""
    searched = [report.searched] if report.searched else []
    return [*searched, *(f"not covered: {from_here(line)}" for line in report.uncovered)]


def problem_lines(report: ParityReport) -> list[str]:
    """What differs, failed or is unusable."""
    return [f"  {from_here(problem)}" for problem in report.problems()]


def render_text(report: ParityReport) -> str:
    """The whole report, without a trailing newline."""
    titles = header(report)
    rows = [titles, *(row(result, len(titles)) for result in report.inputs)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(titles))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in rows]
    lines[1:1] = ["  ".join("-" * width for width in widths if width)] if report.inputs else []
    lines += problem_lines(report)
    lines += stage_lines(report)
    lines += [*widened_lines(report), *fixed_lines(report), *coverage_lines(report), *path_lines(report)]
    lines += recorded_lines(report)
    return "\n".join([*lines, summary(report)])


def _json_safe(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_safe(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_safe(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
