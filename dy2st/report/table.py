"""A report as a rich table, for terminals. Same cells and lines as the plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dy2st.report.parity_report import (
    coverage_lines,
    fixed_lines,
    header,
    path_lines,
    problem_lines,
    recorded_lines,
    row,
    stage_lines,
    summary,
    widened_lines,
)

if TYPE_CHECKING:
    from rich.console import Console

    from dy2st.report.parity_report import ParityReport

_STYLES = {"equal": "green", "raises": "green", "differs": "bold red", "error": "bold red", "unusable": "yellow"}


def print_table(report: ParityReport, console: Console) -> None:
    """Print the table, the problems and the closing line."""
    titles = header(report)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    for result in report.inputs:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row(result, len(titles))))
    console.print(table)
    for line in problem_lines(report):
        console.print(Text(line, style="red"))
    for line in stage_lines(report):
        console.print(Text(line, style="red"))
    for line in [*widened_lines(report), *fixed_lines(report)]:
        console.print(Text(line, style="yellow"))
    for line in coverage_lines(report):
        console.print(Text(line))
    for line in path_lines(report):
        console.print(Text(line, style="yellow"))
    for line in recorded_lines(report):
        console.print(Text(line, style="yellow" if report.changed else ""))
    console.print(Text(summary(report), style=_STYLES[report.outcome]))
