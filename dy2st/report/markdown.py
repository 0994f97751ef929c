"""A run as Markdown: a table of targets, then the inputs and problems of each. Suits ``$GITHUB_STEP_SUMMARY``.

Source: GitHub Flavored Markdown, https://github.github.com/gfm (tables, escapes); a summary holds at most 1 MiB,
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dy2st.report.findings import findings
from dy2st.report.parity_report import graph_line, header, recorded_lines, row, widened_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dy2st.report.findings import Finding
    from dy2st.report.parity_report import ParityReport
    from dy2st.report.run import Run, TargetResult

MOST_BYTES = 1_000_000  # a little less than GitHub takes
_MARKS = {True: "✅", False: "❌"}
# Markup, and what GitHub makes of mentions (@), numbers (#), addresses and names of pictures (a colon).
_SPECIAL = re.compile(r"([\\`*_\[\]<#|~&@]|:(?=\S))")


def render(run: Run) -> str:
    """The verdict, the table, and a section for each target, as many as the summary has room for."""
    found = findings(run)
    text = f"## {_MARKS[run.passed]} dy2st {run.command}: {_plain(run.verdict())}\n"
    if len(run.targets) > 1:
        rows = [
            [
                _code(each.target).replace("|", "\\|"),
                f"{_MARKS[each.passed]} {_plain(each.verdict())}",
                _graph(each.report),
            ]
            for each in run.targets
        ]
        text += "\n" + _table(["target", "verdict", "graph"], rows)
    size = _bytes(text)
    ordered = sorted(run.targets, key=lambda each: each.passed)  # those that fail first
    for done, target in enumerate(ordered):
        section = "\n" + "\n".join(_section(target, [each for each in found if each.target == target.target], run))
        size += _bytes(section)
        if size > MOST_BYTES:
            left = len(ordered) - done
            return text + f"\nThe details of {left} target{'' if left == 1 else 's'} are left out: they are too long.\n"
        text += section
    return text


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _section(target: TargetResult, found: list[Finding], run: Run) -> Iterator[str]:
    single = len(run.targets) == 1
    if not single:
        state = "" if target.passed else " open"
        yield f"<details{state}><summary>{_MARKS[target.passed]} {_html(target.target)}</summary>\n"
    if target.report is not None and target.report.inputs:
        titles = header(target.report)
        rows = [[_plain(cell) for cell in row(result, len(titles))] for result in target.report.inputs]
        yield _table([title or "arguments" for title in titles], rows)
    if single and target.report is not None and target.report.graph:
        yield f"{_graph(target.report)}\n"
    for line in widened_lines(target.report) if target.report is not None else ():
        yield f"{_plain(line)}\n"
    if target.report is not None and target.report.searched:
        yield f"{_plain(target.report.searched)}\n"
    for line in recorded_lines(target.report) if target.report is not None else ():
        yield f"{_plain(line)}\n"
    for each in found:
        yield _item(each, run)
    if found:
        yield ""
    if not single:
        yield "</details>\n"


def _item(finding: Finding, run: Run) -> str:
    place = f"{_code(f'{run.shown(finding.location.filename)}:{finding.location.line}')}: " if finding.location else ""
    hint = f"<br>instead: {_plain(finding.hint)}" if finding.hint else ""
    return f"- **{finding.level}** {place}{_code(finding.code)}: {_plain(finding.message)}{hint}"


def _table(titles: list[str], rows: list[list[str]]) -> str:
    lines = [list(map(_plain, titles)), ["--"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _graph(report: ParityReport | None) -> str:
    return _plain(graph_line(report)) if report else ""


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str) -> str:
    """Text that no renderer takes for markup, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    """A code span, with a fence that is longer than any run of backticks in it."""
    text = " ".join(text.split())
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"
