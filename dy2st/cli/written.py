"""What ``dy2st convert`` prints of a target: the report, and the files that were written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dy2st.cli.console import graph_facts, print_report
from dy2st.cli.interface import all_fixed, interface_lines
from dy2st.embedded.recorded import path_of_tests
from dy2st.errors.places import from_here
from dy2st.onnx.runtime.side_metadata import path_of_metadata
from dy2st.report.parity_report import fixed_lines, path_lines, summary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dy2st.report.run import TargetResult


def print_written(
    result: TargetResult, written: Sequence[Path], *, checked: bool, quiet: bool, several: bool = False
) -> None:
    """A result on stdout, unless that is taken; and on stderr that it is none."""
    report = result.report
    assert report is not None
    if not quiet:
        if several:
            sys.stdout.write(f"{result.target}: {summary(report) if checked else 'not checked'}\n")
            sys.stdout.writelines(f"  {line}\n" for line in (path_lines(report) if checked else fixed_lines(report)))
        elif checked:
            print_report(report)
        else:
            sys.stdout.writelines(f"{line}\n" for line in fixed_lines(report))
        indent = "  " if several else ""
        beside = [path for path in written if path in (path_of_tests(written[0]), path_of_metadata(written[0]))]
        if written:
            size = sum(path.stat().st_size for path in written if path not in beside)
            sys.stdout.write(f"{indent}wrote {from_here(str(written[0]))}, {_readable(size)}{graph_facts(report)}\n")
            sys.stdout.writelines(f"{indent}  {line}\n" for line in interface_lines(written[0]))
        for path in beside:
            sys.stdout.write(f"{indent}wrote {from_here(str(path))}, {_readable(path.stat().st_size)}\n")
    sys.stdout.flush()
    fixed = all_fixed(written[0]) if written and not quiet else ""
    if fixed:
        sys.stderr.write(f"dy2st: {from_here(str(written[0]))}: {fixed}\n")
    if result.exit_code:
        kept = "the file is kept" if written else "no file was written"
        said = not (quiet or several) and report.outcome == "differs"  # below the table
        what = "it differs from eager" if said else from_here(report.problems()[0])
        sys.stderr.write(f"dy2st: {result.target}: {what}; {kept}\n")


def _readable(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:  # noqa: PLR2004 - the next unit
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
