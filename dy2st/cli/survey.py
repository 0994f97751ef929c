"""``dy2st survey``: which functions of a code base have control flow on tensors, and what would be refused."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st import __version__
from dy2st.cli.output import ReportOutput, repository_root
from dy2st.errors import UsageError
from dy2st.report import sarif
from dy2st.report.run import Run
from dy2st.survey.python_files import find, read
from dy2st.survey.report import lines, targets, to_dict
from dy2st.survey.surveying import survey as surveyed

if TYPE_CHECKING:
    import argparse

    from dy2st.survey.surveying import Survey


def survey(options: argparse.Namespace) -> int:
    """Print the survey, or write it as JSON or SARIF.

    Raises:
        UsageError: there is nothing to survey, or another format is asked for.
        SaveError: a file can't be written.
    """
    asked = dict.fromkeys([(each.name, each.file) for each in options.format] + [("json", None)] * options.json)
    for name, file in asked:
        if name not in ("json", "sarif"):
            raise UsageError(f"a survey has no format {name}", hint="json or sarif")
        if file is not None:
            ReportOutput(file).probe()
    if sum(file is None for _, file in asked) > 1:
        raise UsageError("json and sarif can't both go to stdout", hint="a file for one: --format sarif=FILE")
    found = surveyed(read(path, _shown(path)) for path in find(options.place))
    texts = {"json": json.dumps(to_dict(found, options.place), indent=2) + "\n", "sarif": ""}
    if any(name == "sarif" for name, _ in asked):
        texts["sarif"] = _sarif(found)
    for name, file in asked:
        if file is None:
            sys.stdout.write(texts[name])
            continue
        with ReportOutput(file) as output:
            output.path.write_text(texts[name], encoding="utf-8", newline="\n")
            output.commit()
    if all(file is not None for _, file in asked):
        sys.stdout.write("\n".join(lines(found, options.place, everything=options.all)) + "\n")
    return 0


def _shown(path: Path) -> str:
    """A path as it is told: from the working folder, if it lies there."""
    whole, here = os.path.abspath(path), os.getcwd()  # noqa: PTH100, PTH109  as typed: no link is followed
    return os.path.relpath(whole, here) if whole.startswith(here + os.sep) else whole


def _sarif(found: Survey) -> str:
    folder = Path.cwd()
    started = datetime.now(tz=UTC).replace(tzinfo=None).isoformat(timespec="seconds")
    run = Run("survey", __version__, tuple(targets(found)), str(repository_root(folder)), str(folder), started, 0)
    log = json.loads(sarif.render(run))
    for result in log["runs"][0]["results"]:
        result["level"] = "warning"  # nothing has been refused yet
    log["runs"][0]["invocations"][0] |= {"executionSuccessful": True, "exitCode": 0}
    return json.dumps(log, indent=2) + "\n"
