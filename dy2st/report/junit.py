"""A run as JUnit XML: a test suite for each target, a test case for each set of inputs.

A case fails where a stage differs from eager, is in error where a stage did not run, and is skipped where the set
is unusable, or where the baseline has the failure. A target that could not be checked is a suite with one case in
error, and so are those that an interrupt has left out. Where a program has paths, a case says whether the inputs take
them all; where there is a baseline, one says whether the target is as good.

There is no standard; this is what the schemas in use have in common: those of Ant's JUnit task
(https://github.com/windyroad/JUnit-Schema) and of Jenkins' xUnit plugin
(https://github.com/jenkinsci/xunit-plugin, ``junit-10.xsd``). Both want one cause for a case, in this order of elements
and attributes, and times in seconds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dy2st.report.model import never_compared
from dy2st.report.parity_report import graph_line

if TYPE_CHECKING:
    from dy2st.report.model import InputResult
    from dy2st.report.parity_report import ParityReport
    from dy2st.report.run import Run, TargetResult

# What XML 1.0 has no way to say (https://www.w3.org/TR/xml/#charsets).
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run) -> str:
    """The run as XML text."""
    suites = Element("testsuites")
    for number, target in enumerate(run.targets):
        _suite(suites, number, target, run)
    if run.left:
        _rest(suites, run)
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'


def _suite(suites: Element, number: int, target: TargetResult, run: Run) -> None:
    suite = SubElement(suites, "testsuite", id=str(number), name=_clean(target.target), package="dy2st")
    properties = SubElement(suite, "properties")
    facts = {"dy2st": run.version, **(target.report.versions if target.report else {})}
    if target.report:
        facts |= {f"recorded {name}": number for name, number in target.report.recorded.items()}
    if target.report and target.report.graph:
        facts["graph"] = graph_line(target.report)
    for name, value in facts.items():
        SubElement(properties, "property", name=_clean(name), value=_clean(value))
    printed = ""
    if target.report is None:
        _failed(suite, target)
    else:
        for result in target.report.inputs:
            _case(suite, target, result)
        changed = [f"changed: {line}" for line in target.report.changed]
        printed = "\n".join(filter(None, [_paths(suite, target, target.report, run), *changed]))
    if target.is_known:
        _excuse(suite)
    if target.judgement is not None:
        case = _testcase(suite, target, "baseline")
        if target.worse:
            _cause(case, "failure", "worse", target.worse[0], list(target.worse))
    _close(suite, run, printed, target.seconds)


def _rest(suites: Element, run: Run) -> None:
    """What an interrupt has left out."""
    suite = SubElement(suites, "testsuite", id=str(len(run.targets)), name="interrupted", package="dy2st")
    SubElement(suite, "properties")
    case = SubElement(suite, "testcase", name="interrupted", classname="dy2st", time=_seconds(None))
    _cause(case, "error", "interrupted", f"interrupted: {run.left} targets were not checked", [])
    _close(suite, run, "", None)


def _excuse(suite: Element) -> None:
    """What the baseline has is no failure."""
    for case in suite.findall("testcase"):
        for cause in [*case.findall("failure"), *case.findall("error")]:
            message = cause.get("message", "")
            case.remove(cause)
            SubElement(case, "skipped", message=f"known: {message}")


def _close(suite: Element, run: Run, printed: str, seconds: float | None) -> None:
    SubElement(suite, "system-out").text = _clean(printed)
    SubElement(suite, "system-err")
    suite.set("timestamp", run.started)
    suite.set("hostname", "localhost")  # "should be used if the hostname cannot be determined"; it is nobody's business
    suite.set("tests", str(len(suite.findall("testcase"))))
    for attribute, cause in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{cause}"))))
    suite.set("time", _seconds(seconds))


def _testcase(suite: Element, target: TargetResult, name: str, seconds: float | None = None) -> Element:
    return SubElement(suite, "testcase", name=_clean(name), classname=_clean(target.target), time=_seconds(seconds))


def _failed(suite: Element, target: TargetResult) -> None:
    case = _testcase(suite, target, "conversion", target.seconds)
    first = target.failures[0]
    lines = []
    for each in target.failures:
        place = f"{each.file}:{each.line}: " if each.file else ""
        lines.append(f"{place}{each.code or each.kind}: {each.what}")
        lines += [f"  instead: {each.hint}"] if each.hint else []
    _cause(case, "error", first.code or first.kind, first.what, lines)


def _case(suite: Element, target: TargetResult, result: InputResult) -> None:
    case = _testcase(suite, target, f"input {result.name} ({result.description})", result.seconds)
    wrong = [
        f"{stage.stage}: {each.output}: {each.message}" for stage in result.stages for each in stage.differences
    ] + [f"{stage.stage}: {stage.message}" for stage in result.stages if stage.status == "differs" and stage.message]
    wrong += [f"{stage.stage}: first at {stage.culprit}" for stage in result.stages if stage.culprit]
    broken = [f"{stage.stage}: {stage.message}" for stage in result.stages if stage.status == "error"]
    if result.problem:
        SubElement(case, "skipped", message=_clean(result.problem))
    elif wrong:
        kinds = [each.kind for stage in result.stages for each in stage.differences]
        _cause(case, "failure", kinds[0] if kinds else "differs", wrong[0], wrong + broken)
    elif broken:
        _cause(case, "error", "stage", broken[0], broken)
    elif result.outcome != "equal":
        _cause(case, "error", "stage", "no stage has run", [])


def _paths(suite: Element, target: TargetResult, report: ParityReport, run: Run) -> str:
    """The case of the paths; returns what is said beside: of a search, and of paths that need not be covered."""
    blanks = never_compared(report.inputs)
    if not report.paths and not report.paths_problem and not blanks:
        return ""
    case = _testcase(suite, target, "paths")
    lines = [
        f"{run.shown(site.file)}{line.removeprefix(site.file)}" for site in report.paths for _, line in site.missed()
    ]
    lines = [*blanks, *lines, *([report.paths_problem] if report.paths_problem else [])]
    if lines and target.uncovered_fails:
        _cause(case, "failure", "uncovered", lines[0], lines)
        lines = []
    searched = [report.searched] if report.searched else []
    return "\n".join([*searched, *(f"not covered: {line}" for line in lines)])


def _cause(case: Element, name: str, kind: str, message: str, lines: list[str]) -> None:
    cause = SubElement(case, name, message=_clean(message), type=_clean(kind))
    cause.text = _clean("\n".join(lines))


def _seconds(seconds: float | None) -> str:
    return f"{seconds or 0:.3f}"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
