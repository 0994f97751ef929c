"""A run as SARIF 2.1.0, for code scanning: refusals, differences and uncovered paths at the user's lines.

The rules are the error codes with their help pages. Paths are relative to ``%SRCROOT%``, the root of the repository;
what lies elsewhere has an absolute address. A result whose line is not known points at the definition of the model.

Source: Static Analysis Results Interchange Format 2.1.0, OASIS Standard,
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, by section below; what GitHub reads of it,
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning.
"""

from __future__ import annotations

import hashlib
import inspect
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dy2st.errors import kinds
from dy2st.report.findings import DEFECT, OTHER_RULES, findings
from dy2st.report.json_text import json_text

if TYPE_CHECKING:
    from dy2st.errors import Location
    from dy2st.report.findings import Finding
    from dy2st.report.run import Run

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {  # of other rules: error
    "uncovered-path": "warning",
    "fixed-size": "note",
    "dropped-guard": "note",
    "better-than-baseline": "note",
}


def render(run: Run) -> str:
    """The run as a SARIF log with one run of the tool."""
    rules = _rules()
    places = {rule["id"]: index for index, rule in enumerate(rules)}
    found = findings(run)
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "dy2st", "version": run.version, "rules": rules}},
                "invocations": [_invocation(run, found)],
                "originalUriBaseIds": {
                    "%SRCROOT%": {"description": {"text": "The root of the repository."}}
                },  # §3.14.14
                "columnKind": "unicodeCodePoints",  # §3.14.17: our columns count characters
                "results": [_result(each, places[each.code], each.location, run) for each in found if _is_result(each)],
            }
        ],
    }
    return json_text(log)


def _rules() -> list[dict[str, Any]]:
    """Reporting descriptors (§3.49), those of errors with their help pages."""
    rules = []
    for code, kind in kinds().items():
        page = inspect.cleandoc(kind.__doc__ or "")
        before, after = (page.partition(mark)[0].strip() for mark in ("\nBefore:", "\nAfter:"))
        summary = page.partition("\n")[0]
        help_text = {"text": page, "markdown": _as_markdown(page)}
        rules.append(_rule(code, kind.__name__, summary, before or after) | {"help": help_text})
    for code, (name, summary, more) in OTHER_RULES.items():
        if code != DEFECT:  # a notification about the tool, no result
            rules.append(_rule(code, name, summary, f"{summary} {more}") | {"help": {"text": more}})
    return rules


def _rule(code: str, name: str, summary: str, full: str) -> dict[str, Any]:
    return {
        "id": code,
        "name": name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": " ".join(full.split())},
        "defaultConfiguration": {"level": _LEVELS.get(code, "error")},
    }


def _as_markdown(page: str) -> str:
    """A help page with its two examples as code blocks."""
    text, _, example = page.partition("\nBefore:\n")
    before, _, after = example.partition("\nAfter:\n")
    for title, block in (("Before", before), ("After", after)):
        if block.strip():
            text += f"\n**{title}**\n\n```python\n{inspect.cleandoc(block)}\n```\n"
    return text


def _is_result(finding: Finding) -> bool:
    """Whether it is about a place in the user's code, and not about the run."""
    return finding.code != DEFECT and finding.location is not None


def _invocation(run: Run, found: list[Finding]) -> dict[str, Any]:
    """§3.20. Differences are results of a run that succeeded; a defect, or a target that is not there, is none."""
    defects = [_notification(each) for each in found if each.code == DEFECT]
    others = [each for each in found if not _is_result(each) and each.code != DEFECT]
    return {
        "executionSuccessful": not defects and not any(each.level == "error" for each in others),
        "exitCode": run.exit_code,
        "startTimeUtc": f"{run.started}Z",
        "toolExecutionNotifications": defects,
        "toolConfigurationNotifications": [
            _notification(each) | {"associatedRule": {"id": each.code}} for each in others
        ],
    }


def _notification(finding: Finding) -> dict[str, Any]:
    """§3.58."""
    return {"level": finding.level, "message": {"text": _text(finding)}}


def _text(finding: Finding) -> str:
    hint = f" Instead: {finding.hint}" if finding.hint else ""
    return f"{finding.target}: {finding.message}{hint}"


def _result(finding: Finding, index: int, place: Location | None, run: Run) -> dict[str, Any]:
    """§3.27."""
    assert place is not None
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": _text(finding)},
        "partialFingerprints": {"dy2st/v1": _fingerprint(finding, run)},
        "properties": {"target": finding.target},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(place, run), "region": _region(place)}}],
    }


def _region(place: Location) -> dict[str, Any]:
    """§3.30: lines and columns from 1; the end column is the one behind the last."""
    region: dict[str, Any] = {"startLine": place.line}
    if place.column is not None:
        region["startColumn"] = place.column + 1
        if place.end_column is not None and place.end_column > place.column:
            region["endColumn"] = place.end_column + 1
    if place.text and place.text.strip():
        region["snippet"] = {"text": place.text}
    return region


def _artifact(place: Location, run: Run) -> dict[str, str]:
    """§3.4."""
    shown = run.shown(place.filename)
    if PurePath(shown).is_absolute():
        return {"uri": f"file://{quote(shown, errors='replace')}"}
    return {"uri": quote(shown, errors="replace"), "uriBaseId": "%SRCROOT%"}


def _fingerprint(finding: Finding, run: Run) -> str:
    """What makes two runs' results the same alert (§3.27.17): not the line's number, and no measured value."""
    file = run.shown(finding.location.filename) if finding.location else ""
    parts = (finding.code, finding.target, file, finding.subject)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
