"""A survey as text, as JSON, and as what a code scanner reads."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from dy2st.errors import summaries
from dy2st.report.run import Failure, TargetResult
from dy2st.survey.likely_causes import Cause
from dy2st.survey.surveying import Survey, Surveyed

# How many places of a cause, and how many functions, the text shows.
MOST_PLACES, MOST_FUNCTIONS = 5, 40


def by_cause(survey: Survey) -> list[tuple[str, list[tuple[Surveyed, Cause]]]]:
    """The causes by code, the most frequent first."""
    found: dict[str, list[tuple[Surveyed, Cause]]] = defaultdict(list)
    for function in survey.functions:
        for cause in function.causes:
            found[cause.code].append((function, cause))
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def lines(survey: Survey, place: str, *, everything: bool = False) -> Iterator[str]:
    """The text for a terminal: functions, causes, files that were not read."""
    refused = sum(bool(function.causes) for function in survey.functions)
    yield (
        f"{place}: {_count(survey.files, 'file')}, {_count(survey.read, 'function')}, "
        f"{len(survey.functions)} with control flow on tensors; something is likely to be refused in {refused}"
    )
    shown = survey.functions if everything else survey.functions[:MOST_FUNCTIONS]
    if shown:
        yield ""
        rows = [("function", "at", "control flow on tensors", "likely refused"), *map(_row, shown)]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        for number, row in enumerate(rows):
            yield "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()
            if not number:
                yield "  ".join("-" * width for width in (*widths, len(row[3])))
    if len(shown) < len(survey.functions):
        yield f"... and {len(survey.functions) - len(shown)} more: --all shows them"
    if refused:
        yield ""
        yield "likely causes, the most frequent first; dy2st explain CODE says what to write instead"
        for code, places in by_cause(survey):
            told = [f"{function.file}:{cause.line}" for function, cause in places]
            more = f" and {len(told) - MOST_PLACES} more" if len(told) > MOST_PLACES and not everything else ""
            at = ", ".join(told if everything else told[:MOST_PLACES])
            yield f"{len(places):4}  {code}  {summaries()[code]}"
            yield f"            {at}{more}"
    for name, problem in survey.problems:
        yield f"not read: {name} ({problem})"


def _row(function: Surveyed) -> tuple[str, str, str, str]:
    counts: dict[str, int] = defaultdict(int)
    for construct in function.constructs:
        counts[construct.kind] += 1
    flow = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in counts.items())
    codes = ", ".join(dict.fromkeys(cause.code for cause in function.causes))
    return function.name, f"{function.file}:{function.line}", flow, codes


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def to_dict(survey: Survey, place: str) -> dict[str, Any]:
    """All of it as plain data."""
    return {
        "place": place,
        "files": survey.files,
        "functions": survey.read,
        "staged": [
            {
                "file": function.file,
                "function": function.name,
                "line": function.line,
                "constructs": [
                    {"kind": each.kind, "line": each.line, "column": each.column + 1, "text": each.text}
                    for each in function.constructs
                ],
                "causes": [
                    {"code": each.code, "what": each.what, "line": each.line, "column": each.column + 1}
                    for each in function.causes
                ],
            }
            for function in survey.functions
        ],
        "causes": [{"code": code, "count": len(places)} for code, places in by_cause(survey)],
        "not_read": [{"file": name, "problem": problem} for name, problem in survey.problems],
    }


def targets(survey: Survey) -> list[TargetResult]:
    """The functions in which something is likely to be refused, as a run has its targets."""
    return [
        TargetResult(
            f"{function.file}:{function.name}", 0, failures=tuple(_failure(function, each) for each in function.causes)
        )
        for function in survey.functions
        if function.causes
    ]


def _failure(function: Surveyed, cause: Cause) -> Failure:
    what = f"likely to be refused: {cause.what}"
    file = os.path.abspath(function.file)  # noqa: PTH100  as typed: no link is followed
    return Failure(cause.code, "LikelyRefusal", what, file=file, line=cause.line, column=cause.column + 1)
