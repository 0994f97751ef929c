"""What a run is compared with: an earlier one, as a file that is committed; what is known, and what became worse.

An entry of the file is what a target was like, in terms that stay the same from run to run and from machine to machine:
no line numbers, no times, and errors as powers of ten.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.report.findings import DEFECT, UNCOVERED, findings
from dy2st.report.run import Failure, Judgement, Run, TargetResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dy2st.report.findings import Finding
    from dy2st.report.parity_report import ParityReport

FORMAT = 1
# How much larger a graph may become.
_GROWTH = 1.1
# An output's error is a share of its tolerance. It may grow to ten times what it was, and to a tenth anyway.
_ERROR_GROWTH, _SMALL_ERROR = 10.0, 0.1
_LARGEST = 1e9
# What may be another time's: it is never known.
_PASSING = {DEFECT, "D2S504", "D2S505", "D2S506"}

Entry = dict[str, Any]


class Baseline:
    """The entries of a file by target; ``folder`` is the file's, from which targets are named."""

    def __init__(self, folder: Path, entries: Mapping[str, Entry]) -> None:
        self.folder, self.entries = folder, dict(entries)

    @classmethod
    def from_plain(cls, folder: Path, plain: Any) -> Baseline:
        """Of a file's content.

        Raises:
            ValueError: it is no baseline, or of a newer form.
        """
        if not isinstance(plain, dict) or not isinstance(plain.get("targets"), dict):
            raise ValueError("there are no targets in it")  # noqa: TRY004 - as for all that is wrong with the content
        if plain.get("format") != FORMAT:
            raise ValueError(f"its format is {plain.get('format')!r}, not {FORMAT}")
        entries = plain["targets"]
        wrong = next((name for name, each in entries.items() if not _is_entry(each)), None)
        if wrong is not None:
            raise ValueError(f"the entry of {wrong} is none")
        return cls(folder, entries)

    def to_plain(self) -> dict[str, Any]:
        """The content of a file, in an order that does not depend on the run."""
        return {"format": FORMAT, "targets": dict(sorted(self.entries.items()))}

    def name(self, target: str) -> str:
        """A target as the file names it."""
        where, _, name = target.rpartition(":")
        if not where or os.sep in name:
            where, name = target, ""
        if Path(where).exists() or where.endswith(".py"):
            where = Path(os.path.relpath(where, self.folder)).as_posix()
        return where if name in {"", "model"} else f"{where}:{name}"

    def judged(self, result: TargetResult) -> TargetResult:
        """A result beside what is known: what is worse makes it fail, what is no worse does not."""
        entry = self.entries.get(self.name(result.target))
        if entry is None:
            return replace(result, judgement=Judgement())
        now = self._entry(result)
        worse = [*_new_problems(entry, now), *_changes(entry, now)]
        passing = [each for each in self._problems(result) if each.partition(" ")[0] in _PASSING]
        better = [each for key in ("problems", "uncovered") for each in entry[key] if each not in now[key]]
        if worse or passing:
            return replace(result, exit_code=max(result.exit_code, 1), judgement=Judgement(tuple(worse), tuple(better)))
        known = result.exit_code != 0
        return replace(result, exit_code=0, judgement=Judgement((), tuple(better), known))

    def missing(self, results: Iterable[TargetResult]) -> list[TargetResult]:
        """A failure for each target of the file that was not checked."""
        done = {self.name(each.target) for each in results}
        return [
            TargetResult(
                name,
                1,
                failures=(
                    Failure("D2S506", "MissingTargetError", _MISSING, "--update-baseline, if it is gone for good"),
                ),
            )
            for name in self.entries
            if name not in done
        ]

    def updated(self, results: Iterable[TargetResult], *, whole: bool) -> Baseline:
        """What is known after these; ``whole`` if they are all that there is."""
        new = {self.name(each.target): self._entry(each) for each in results}
        return Baseline(self.folder, new if whole else {**self.entries, **new})

    def _entry(self, result: TargetResult) -> Entry:
        lasting = [each for each in self._problems(result) if each.partition(" ")[0] not in _PASSING]
        found: Entry = {"problems": lasting, "uncovered": self._uncovered(result)}
        if result.report is not None:
            found["nodes"] = sum(result.report.graph.values())
            found["operators"] = dict(sorted(result.report.graph.items()))
            found["outputs"] = _outputs(result.report)
        return found

    def _problems(self, result: TargetResult) -> list[str]:
        found = findings(Run("check", "", (replace(result, judgement=None),)))
        return sorted({self._text(each) for each in found if each.level == "error" and each.code != UNCOVERED})

    def _uncovered(self, result: TargetResult) -> list[str]:
        found = findings(Run("check", "", (replace(result, judgement=None),)))
        return sorted({self._text(each) for each in found if each.code == UNCOVERED})

    def _text(self, finding: Finding) -> str:
        """A finding without what changes although nothing does: the code, and a line's text in place of its number."""
        place = finding.location
        if finding.code in _PASSING:
            return finding.code
        if place is None:
            return f"{finding.code} {finding.subject}"
        file = Path(os.path.relpath(place.filename, self.folder)).as_posix()
        if finding.code == UNCOVERED or finding.code in {"D2S501", "D2S502"}:
            return f"{finding.code} {file}: {finding.subject}"
        return f"{finding.code} {file}: {_line(place.filename, place.line) or finding.subject}"


_MISSING = "the baseline has this target, and it was not checked"


def _is_entry(entry: Any) -> bool:
    lists = isinstance(entry, dict) and all(isinstance(entry.get(key), list) for key in ("problems", "uncovered"))
    outputs = entry.get("outputs", {}) if lists else None
    return (
        isinstance(outputs, dict)
        and isinstance(entry.get("nodes", 0), int)
        and all(isinstance(each, dict) and isinstance(each.get("error"), (int, float)) for each in outputs.values())
    )


def _line(file: str, number: int) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()[number - 1].strip()
    except (OSError, IndexError):
        return ""


def _outputs(report: ParityReport) -> dict[str, dict[str, Any]]:
    """Each output's dtype and shape on the first input that has it, and its largest error on any."""
    found: dict[str, dict[str, Any]] = {}
    for result in report.inputs:
        for stage in result.stages:
            for each in stage.outputs:
                entry = found.setdefault(each.output, {"type": f"{each.dtype}{list(each.shape)}", "error": 0.0})
                entry["error"] = max(entry["error"], _rounded(each.of_tolerance))
    return dict(sorted(found.items()))


def _rounded(error: float | None) -> float:
    """The next power of ten, from a millionth on; 0 below that."""
    if error is None or error < 1e-6:  # noqa: PLR2004 - so little is chance
        return 0.0
    return min(float(f"1e{math.ceil(math.log10(error) - 1e-9)}"), _LARGEST) if math.isfinite(error) else _LARGEST


def _new_problems(before: Entry, now: Entry) -> list[str]:
    new = [each for each in now["problems"] if each not in before["problems"]]
    uncovered = [each for each in now["uncovered"] if each not in before["uncovered"]]
    return new + uncovered


def _changes(before: Entry, now: Entry) -> list[str]:
    """What else is worse, where both have a graph."""
    if "nodes" not in before or "nodes" not in now:
        return []
    found = []
    if now["nodes"] > before["nodes"] * _GROWTH:
        found.append(f"the graph has {now['nodes']} nodes, and had {before['nodes']}")
    old, new = before.get("outputs", {}), now["outputs"]
    if old:
        found += [f"there is no output {name}" for name in old if name not in new]
        found += [f"there is a new output {name}" for name in new if name not in old]
    for name in sorted(old.keys() & new.keys()):
        if old[name].get("type") != new[name]["type"]:
            found.append(f"output {name} is {new[name]['type']}, and was {old[name].get('type')}")
        error, known = new[name]["error"], old[name]["error"]
        if 1 >= error > max(known * _ERROR_GROWTH, _SMALL_ERROR):
            found.append(f"output {name} is off by {error:g} of its tolerance, and was by {known:g}")
    return found
