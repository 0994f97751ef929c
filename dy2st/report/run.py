"""What one command did: its targets, each with a report or with what has stopped it. All formats are made from it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from dy2st.errors import Dy2stError, Location
from dy2st.report.graph_drawing import Drawing
from dy2st.report.listing import Listing
from dy2st.report.model import never_compared
from dy2st.report.parity_report import ParityReport, summary

INTERRUPTED = 130  # the exit code of a command that was interrupted

TargetOutcome = Literal["equal", "differs", "unusable", "error", "unchecked"]


@dataclass(frozen=True)
class Failure:
    """An error that has stopped a target. ``code`` is None for a defect of dy2st; columns count from 1.

    ``text`` is the line of the source, where it was at hand.
    """

    code: str | None
    kind: str
    what: str
    hint: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    text: str = ""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The facts of an exception."""
        if not isinstance(error, Dy2stError):
            return cls(None, type(error).__name__, str(error))
        place = error.location
        if place is None:
            return cls(error.code, type(error).__name__, error.what, error.hint)
        return cls(
            error.code,
            type(error).__name__,
            error.what,
            error.hint,
            place.filename,
            place.line,
            None if place.column is None else place.column + 1,
            None if place.end_column is None else place.end_column + 1,
            place.text or "",
        )

    @property
    def location(self) -> Location | None:
        """The place in the user's source, if it is known."""
        if self.file is None or self.line is None:
            return None
        column = None if self.column is None else self.column - 1
        end = None if self.end_column is None else self.end_column - 1
        return Location(self.file, self.line, column, self.text or None, end)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, what is not known as None."""
        return asdict(self)


@dataclass(frozen=True)
class Judgement:
    """A target beside a baseline.

    ``worse`` and ``better`` are a line each; ``known`` if it fails for nothing but what the baseline has.
    """

    worse: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    known: bool = False


@dataclass(frozen=True)
class TargetResult:
    """One target: its report, or the failures that there are in place of one.

    ``definition`` is where the model's own code begins, or the target's file; ``uncovered_fails`` says whether a path
    that no input takes makes the command fail; ``listings`` are the sources and
    ``drawing`` the graph, where a format shows them. ``written``
    says what was written: ``onnx_file`` (None if nothing was left), ``files`` and ``bytes``. ``cached`` if this was
    found in an earlier run. ``judgement`` is there if the run is compared with a baseline.
    """

    target: str
    exit_code: int
    report: ParityReport | None = None
    failures: tuple[Failure, ...] = ()
    definition: Location | None = None
    seconds: float | None = None
    uncovered_fails: bool = False
    listings: tuple[Listing, ...] = ()
    drawing: Drawing | None = None
    written: dict[str, Any] = field(default_factory=dict)
    cached: bool = False
    judgement: Judgement | None = None

    @property
    def outcome(self) -> TargetOutcome:
        """The report's outcome; ``error`` without a report, ``unchecked`` if nothing was to be compared."""
        if self.report is None:
            return "error"
        return self.report.outcome if self.report.inputs else "unchecked"

    @property
    def passed(self) -> bool:
        """Whether the target alone would make the command succeed."""
        return self.exit_code == 0

    @property
    def is_known(self) -> bool:
        """Whether it has failed as the baseline has it, which does not count."""
        return self.judgement is not None and self.judgement.known

    @property
    def worse(self) -> tuple[str, ...]:
        """What is worse than in the baseline."""
        return () if self.judgement is None else self.judgement.worse

    @property
    def has_gap(self) -> bool:
        """Whether it fails for a path that no input takes."""
        return not self.is_known and self.uncovered_fails and self.report is not None and not self.report.covered

    def verdict(self) -> str:
        """One line: how it went."""
        words = f"known: {self._verdict()}" if self.is_known else self._verdict()
        words += ", worse than the baseline" if self.worse else ""
        return f"{words} (cached)" if self.cached else words

    def _verdict(self) -> str:
        if self.report is None:
            count = len(self.failures)
            return "could not be checked" if count == 1 else f"could not be checked: {count} errors"
        if self.outcome == "unchecked":
            return "written without a check"
        if not self.uncovered_fails or self.report.covered:
            return summary(self.report)
        blanks = len(never_compared(self.report.inputs))
        missed = len(self.report.uncovered) - blanks
        told = [f"{blanks} output{' has' if blanks == 1 else 's have'} no value on any input"] if blanks else []
        told += [f"{missed} path{' is' if missed == 1 else 's are'} not covered"] if missed else []
        return f"{summary(self.report)}, but {' and '.join(told)}"


@dataclass(frozen=True)
class Run:
    """A whole command.

    ``started`` is in UTC, as ISO 8601 without a zone. Paths are told relative to ``root``, the root of the repository;
    ``folder`` is the one that the command ran in. ``left`` is the number of targets that an interrupt has left out.
    """

    command: str
    version: str
    targets: tuple[TargetResult, ...]
    root: str = ""
    folder: str = ""
    started: str = "1970-01-01T00:00:00"
    left: int = 0

    @property
    def exit_code(self) -> int:
        """The highest of the targets'; that of an interrupt if there was one."""
        if self.left:
            return INTERRUPTED
        return max((each.exit_code for each in self.targets), default=0)

    @property
    def passed(self) -> bool:
        """Whether the command succeeded."""
        return self.exit_code == 0

    def verdict(self) -> str:
        """One line over all targets; with a single one, its own."""
        if len(self.targets) == 1 and not self.left:
            return self.targets[0].verdict()
        outcomes = Counter(each.outcome for each in self.targets)
        counts = {
            f"differ{'s' * (outcomes['differs'] == 1)}": outcomes["differs"],
            "unusable": outcomes["unusable"],
            "could not be checked": outcomes["error"],
            "not covered": sum(each.has_gap for each in self.targets),
            "known to fail": sum(each.is_known for each in self.targets),
            "worse than the baseline": sum(bool(each.worse) for each in self.targets),
            "cached": sum(each.cached for each in self.targets),
        }
        told = "".join(f"; {count} {what}" for what, count in counts.items() if count)
        left = f"; interrupted: {self.left} not checked" if self.left else ""
        return f"{outcomes['equal']} of {len(self.targets) + self.left} targets are equal to eager{told}{left}"

    def shown(self, filename: str) -> str:
        """A path with slashes, relative to ``root`` if it lies there."""
        path = PurePath(os.path.normpath(PurePath(self.folder, filename)))
        if self.root and path.is_relative_to(self.root):
            path = path.relative_to(self.root)
        return path.as_posix()
