"""A run as JSON. Its shape is published in ``schema/report-1.json`` (JSON Schema 2020-12), which lies beside this file.

``schema_version`` is ``MAJOR.MINOR``: a new minor version only adds keys, so readers ignore those they don't know.

Source: JSON Schema, draft 2020-12, https://json-schema.org/draft/2020-12.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.errors.places import from_here
from dy2st.report.json_text import json_text

if TYPE_CHECKING:
    from dy2st.report.run import Failure, Run, TargetResult

SCHEMA_VERSION = "1.3"
SCHEMA_FILE = Path(__file__).parent / "schema" / "report-1.json"


def render(run: Run) -> str:
    """The run as JSON text."""
    if run.command == "convert" and run.targets[0].report is not None:
        found = _target(run.targets[0])
    else:
        found = {"targets": [_target(each) for each in run.targets]}
        if len(run.targets) == 1:  # said at the top, too, as where nothing could be run at all
            found |= failures(run.targets[0].failures)
    interrupted = {"interrupted": run.left} if run.left else {}
    return as_text({"dy2st": run.version, **found, **interrupted, "exit_code": run.exit_code})


def as_text(found: dict[str, Any]) -> str:
    """A dict as JSON text, with the schema's version in front."""
    return json_text({"schema_version": SCHEMA_VERSION, **found})


def failures(found: tuple[Failure, ...]) -> dict[str, Any]:
    """All of them as ``errors``; one alone is ``error``, too. Nothing for none. Files as they are printed."""
    here = (replace(each, file=None if each.file is None else from_here(each.file)) for each in found)
    plain = [each.to_dict() for each in here]
    alone = {"error": plain[0]} if len(plain) == 1 else {}
    return alone | ({"errors": plain} if plain else {})


def _target(target: TargetResult) -> dict[str, Any]:
    seconds = {} if target.seconds is None else {"seconds": round(target.seconds, 3)}
    if target.report is None:
        message = "\n".join(each.what for each in target.failures)
        found = {"model": target.target, "outcome": target.outcome, "message": message} | failures(target.failures)
    else:
        found = {**target.report.to_dict(), "outcome": target.outcome, "model": target.target}
    cached: dict[str, Any] = {"cached": True} if target.cached else {}
    baseline = {} if target.judgement is None else {"baseline": asdict(target.judgement)}
    return found | seconds | cached | baseline | target.written
