"""A run as workflow commands: annotations that GitHub shows at the lines of a pull request.

GitHub shows ten errors, ten warnings and ten notices of a step, so the worst come first and the last notice says how
many were left out.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands (the commands); the escapes
are those of ``packages/core/src/command.ts`` in https://github.com/actions/toolkit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dy2st.report.findings import findings

if TYPE_CHECKING:
    from dy2st.report.findings import Finding
    from dy2st.report.run import Run

MOST = 10  # of each level, of one step
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(run: Run) -> str:
    """One command a line; a last notice has the verdict, and how many findings are not shown."""
    found = findings(run)
    limits = {"error": MOST, "warning": MOST, "note": MOST - 1}  # one notice is the last
    lines: list[str] = []
    left_out: dict[str, int] = {}
    for each in found:
        if limits[each.level] > 0:
            limits[each.level] -= 1
            lines.append(_command(each, run))
        else:
            left_out[each.level] = left_out.get(each.level, 0) + 1
    more = " and ".join(f"{count} {level}{'' if count == 1 else 's'}" for level, count in left_out.items())
    verdict = run.verdict() if len(run.targets) != 1 else f"{run.targets[0].target}: {run.verdict()}"
    text = verdict + (f"; {more} more than GitHub shows" if more else "")
    lines.append(f"::notice title=dy2st {run.command}::{_data(text)}")
    return "\n".join(lines) + "\n"


def _command(finding: Finding, run: Run) -> str:
    properties: dict[str, str | int] = {}
    place = finding.location
    if place is not None:
        properties |= {"file": run.shown(place.filename), "line": place.line}
        if place.column is not None:
            properties["col"] = place.column + 1
            if place.end_column is not None and place.end_column > place.column:
                properties["endColumn"] = place.end_column + 1
    properties["title"] = finding.title
    told = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    hint = f"\ninstead: {finding.hint}" if finding.hint else ""
    return f"::{_COMMANDS[finding.level]} {told}::{_data(finding.message + hint)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
