"""A run as one HTML page that needs nothing else: no network, no fonts, no other files. It reads without its script.

The script makes tables sort and filter, shows the graph's nodes of one line, and switches between light and dark. The
page's own policy forbids it to load anything.

Source: Web Content Accessibility Guidelines 2.2, https://www.w3.org/TR/WCAG22 (contrast, focus, names); sortable tables
as in the ARIA Authoring Practices Guide, https://www.w3.org/WAI/ARIA/apg/patterns/table/examples/sortable-table/.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.report.file_arms import untaken, words_for
from dy2st.report.findings import DIFFERS, OTHER_RULES, UNUSABLE, findings
from dy2st.report.html_graph import graph_section
from dy2st.report.html_pictures import pictures_of, shape_text
from dy2st.report.html_source import line_id, listing_section
from dy2st.report.markup import Content, Html, cells, scrolling, table, tag
from dy2st.report.parity_report import graph_line, never, recorded_lines, widened_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dy2st.errors import Location
    from dy2st.report.findings import Finding
    from dy2st.report.model import InputResult, StageResult
    from dy2st.report.parity_report import ParityReport
    from dy2st.report.run import Run, TargetResult

MOST_PICTURES = 24  # of one target; the outputs that are furthest off
_WEB = Path(__file__).parent / "web"
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
_SIGNS = {"equal": "✓", "differs": "✗", "error": "✗", "unusable": "!", "unchecked": "-"}
_STYLES = {"equal": "good", "differs": "bad", "error": "bad", "unusable": "warn", "unchecked": "warn"}


def render(run: Run) -> str:
    """The page."""
    title = f"dy2st {run.command}: {run.verdict()}"
    found = findings(run)
    single = len(run.targets) == 1
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html((_WEB / "report.css").read_text(encoding="utf-8"))),
    )
    body = tag(
        "body",
        tag("a", "Skip to the results", href="#results", class_="skip"),
        tag(
            "header",
            tag("p", "dy2st ", tag("span", run.command), class_="brand"),
            _sections(run, found),
            tag("button", "Only failures", type="button", id="failures", aria_pressed="false", hidden=True)
            if not single and not run.passed
            else None,
            tag("button", "Dark", type="button", id="theme", aria_pressed="false", hidden=True),
        ),
        tag(
            "main",
            tag(
                "h1", _badge("equal" if run.passed else "differs", "passed" if run.passed else "failed"), run.verdict()
            ),
            tag("p", f"{_when(run)}dy2st {run.version}", class_="muted"),
            None if single else _contents(run),
            [_folded(target, index, found, run) for index, target in enumerate(run.targets)],
            id="results",
            tabindex="-1",
        ),
        tag("footer", tag("p", f"Written by dy2st {run.version}. Differences are those from eager PyTorch.")),
        tag("script", Html((_WEB / "report.js").read_text(encoding="utf-8"))),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _sections(run: Run, found: Sequence[Finding]) -> Html | None:
    """The links that stay at the top: to the targets, or to the parts of the only one."""
    links = [("#targets", "Targets")]
    if len(run.targets) == 1:
        (target,) = run.targets
        report = target.report
        there = {
            "findings": bool(found),
            "inputs": report is not None and bool(report.inputs),
            "paths": report is not None and bool(report.paths),
            "source": report is not None and bool(target.listings),
            "graph": report is not None and target.drawing is not None,
            "conditions": report is not None,
        }
        links = [(f"#t0-{part}", part.capitalize()) for part, shown in there.items() if shown]
    if not links:
        return None
    return tag("nav", tag("ul", [tag("li", tag("a", text, href=href)) for href, text in links]), aria_label="Sections")


def _folded(target: TargetResult, index: int, found: Sequence[Finding], run: Run) -> Html:
    """A target; of several, those that passed are folded."""
    first, *rest = _target(target, index, found, run)
    if len(run.targets) == 1:
        return tag("section", first, rest, class_="target")
    return tag(
        "details", tag("summary", first), rest, class_="target", open=not target.passed, data_passed=target.passed
    )


def _when(run: Run) -> str:
    return f"{run.started.replace('T', ' ')} UTC · "


def _badge(style: str, text: str) -> Html:
    sign = tag("span", _SIGNS[style], aria_hidden="true")
    return tag("span", sign, " ", text, class_=f"badge {_STYLES[style]}")


def _contents(run: Run) -> Html:
    rows = [
        _row_of(
            each,
            tag("a", each.target, href=f"#t{index}"),
            _badge("equal" if each.passed else "differs", "passed" if each.passed else "failed"),
            each.verdict(),
            graph_line(each.report) if each.report else "",
            "" if each.seconds is None else f"{each.seconds:.1f}",
            numeric=[4],
        )
        for index, each in enumerate(run.targets)
    ]
    titles = ["target", "result", "verdict", "graph", "seconds"]
    return tag(
        "nav", tag("h2", "Targets", id="targets"), table("Targets", titles, rows, numeric=[4]), aria_label="Targets"
    )


def _row_of(target: TargetResult, *values: Content, numeric: Sequence[int]) -> Html:
    row = cells(*values, numeric=numeric)
    return Html(row.replace("<tr>", "<tr data-passed>", 1)) if target.passed else row


def _target(target: TargetResult, index: int, found: Sequence[Finding], run: Run) -> Iterator[Html]:
    result = "passed" if target.passed else "failed"
    yield tag("h2", _badge("equal" if target.passed else "differs", result), target.target, id=f"t{index}")
    if len(run.targets) > 1:
        yield tag("p", target.verdict())
    yield from _findings([each for each in found if each.target == target.target], run, index)
    if target.report is None:
        return
    yield from _inputs(target.report, index)
    if target.report.blame:
        yield tag("p", target.report.blame)
    yield from _errors(target.report)
    yield from _paths(target.report, run, index)
    if target.listings:
        yield tag("h3", "Source", id=f"t{index}-source")
        boxes = {} if target.drawing is None else target.drawing.places(f"t{index}g")
        for number, listing in enumerate(target.listings):
            yield listing_section(listing, f"t{index}s{number}", run, boxes)
    if target.drawing is not None:
        lines = {
            (listing.file, line): line_id(f"t{index}s{number}", line)
            for number, listing in enumerate(target.listings)
            for line in range(listing.first_line, listing.first_line + len(listing.lines))
        }
        yield tag("h3", "Graph", id=f"t{index}-graph")
        yield graph_section(target.drawing, f"t{index}g", lines, target.report.arms)
    yield from _facts(target.report, index)


def _findings(found: Sequence[Finding], run: Run, index: int) -> Iterator[Html]:
    if not found:
        return
    items = []
    styles = {"error": "differs", "warning": "unusable", "note": "unchecked"}
    for each in found:
        place = f"{run.shown(each.location.filename)}:{each.location.line}" if each.location else ""
        items.append(
            tag(
                "li",
                tag("p", _badge(styles[each.level], each.level), " ", tag("code", each.code), " ", _place(place)),
                tag("p", each.message),
                _excerpt(each.location),
                tag("p", "Instead: ", each.hint) if each.hint else None,
                tag("p", "More: ", tag("code", f"dy2st explain {each.code}"), class_="muted")
                if each.code not in OTHER_RULES and each.code not in {DIFFERS, UNUSABLE}
                else None,
            )
        )
    yield tag("h3", "Findings", id=f"t{index}-findings")
    yield tag("ul", items, class_="findings")


def _excerpt(location: Location | None) -> Html | None:
    """The line of the source with a mark below what the finding is about.

    Of a path only the column in the file is known, not how far its line is indented there: it has no mark.
    """
    shown = [] if location is None else location.excerpt()
    if location is None or not shown:
        return None
    shown = shown if location.end_column is not None else shown[:1]
    text = tag("pre", tag("code", "\n".join(line[4:] for line in shown)))
    return tag("div", scrolling("Source line", text), class_="excerpt")


def _place(text: str) -> Html | None:
    return tag("span", text, class_="place") if text else None


def _inputs(report: ParityReport, index: int) -> Iterator[Html]:
    if not report.inputs:
        return
    ran: tuple[StageResult, ...] = next((each.stages for each in report.inputs if each.stages), ())
    stages = [stage.stage for stage in ran]
    titles = ["input", "arguments", "result", *stages, "largest difference", "largest relative"]
    last = len(titles) - 2
    rows = []
    for result in report.inputs:
        outcomes = [_badge(stage.status, stage.status) for stage in result.stages] or [Html() for _ in stages]
        sizes = _sizes(result)
        said = result.problem or (f"raises {result.raises}" if result.raises else "")
        rows.append(
            cells(
                result.name,
                tag("code", result.description),
                [_badge(result.outcome, result.outcome), tag("p", said) if said else None],
                *outcomes,
                *sizes,
                numeric=[last, last + 1],
            )
        )
    yield tag("h3", "Inputs", id=f"t{index}-inputs")
    yield table("Inputs", titles, rows, numeric=[last, last + 1])


def _sizes(result: InputResult) -> tuple[str, str]:
    """The largest absolute and relative difference of any stage; nothing where none was measured."""
    ran = [stage for stage in result.stages if stage.status != "error"]
    if not ran:
        return "", ""
    return f"{max(stage.max_abs for stage in ran):.3g}", f"{max(stage.max_rel for stage in ran):.3g}"


def _errors(report: ParityReport) -> Iterator[Html]:
    """The outputs that have any difference: their numbers in a table, and pictures of those furthest off."""
    if not any(each.stages for each in report.inputs):
        return
    yield tag("h3", "Outputs")
    rows = [row for each in report.inputs for stage in each.stages for row in _output_rows(each, stage)]
    if not rows:
        yield tag("p", "Every output of every stage has the same values as eager's." if report.ok else "None compared.")
        return
    numbers = ["largest", "relative", "ULPs", "cosine", "mismatches"]
    titles = ["input", "stage", "output", "result", "shape", *numbers, "worst at"]
    places = range(5, 5 + len(numbers))
    yield tag("p", "Outputs with any difference from eager; all others have the same values.", class_="muted")
    yield table("Outputs with a difference", titles, rows, numeric=places)
    yield from _drawings(report)


def _output_rows(result: InputResult, stage: StageResult) -> Iterator[Html]:
    """A row for each output that has any difference; what is not known of it stays empty."""
    drawn = {picture.output: picture for picture in stage.pictures}
    measured = {each.output: each for each in stage.outputs}
    told = dict.fromkeys([*measured, *drawn, *(each.output for each in stage.differences)])
    for name in told:
        picture, metrics = drawn.get(name), measured.get(name)
        wrong = _differs(stage, name)
        if not wrong and picture is None and not (metrics and metrics.max_abs):
            continue
        largest = picture.largest if picture else metrics.max_abs if metrics else None
        yield cells(
            result.name,
            stage.stage,
            tag("code", name),
            _badge("differs", "differs") if wrong else _badge("equal", "within tolerance"),
            tag("code", shape_text(picture.shape)) if picture else "",
            _number(largest),
            _number(metrics.max_rel) if metrics else "",
            _number(metrics.max_ulps) if metrics else "",
            f"{metrics.cosine:.7g}" if metrics and metrics.cosine is not None else "",
            f"{metrics.mismatched:.1%}" if metrics else "",
            tag("code", str(list(metrics.worst))) if metrics and metrics.worst else "",
            numeric=range(5, 10),
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _drawings(report: ParityReport) -> Iterator[Html]:
    found = [(each, stage, picture) for each in report.inputs for stage in each.stages for picture in stage.pictures]
    ordered = sorted(found, key=lambda each: (not _differs(each[1], each[2].output), -each[2].largest))
    drawings = []
    for result, stage, picture in ordered[:MOST_PICTURES]:
        title = f"{picture.output}, {stage.stage}, input {result.name}"
        drawings.append(tag("section", tag("h4", title), pictures_of(picture, title), class_="drawing"))
    if not drawings:
        return
    left = len(found) - len(drawings)
    about = f" ({len(drawings)} of {len(found)} outputs, those furthest off)" if left else ""
    shown = any(_differs(stage, picture.output) for _, stage, picture in found)
    yield tag("details", tag("summary", f"Pictures of errors{about}"), drawings, open=shown, class_="drawings")


def _differs(stage: StageResult, output: str) -> bool:
    return any(each.output == output for each in stage.differences)


def _paths(report: ParityReport, run: Run, index: int) -> Iterator[Html]:
    if report.paths:
        yield from _lines(report, run, index)
    yield from _arms(report, run)


def _arms(report: ParityReport, run: Run) -> Iterator[Html]:
    """The ways of the file that no input took, where the lines don't tell them."""
    rows = [
        cells(
            "" if site.line is None else f"{run.shown(site.file)}:{site.line}",
            tag("code", f"{site.op} {site.node}"),
            words_for(way),
            ", ".join(f"{arm} of {name}" for name, arm in site.inside),
        )
        for site, way in untaken(report.arms, report.paths)
    ]
    if rows:
        yield table("Arms of the file that no input takes", ["line", "node", "what never ran", "inside"], rows)
    elif report.arms:
        yield tag("p", "The inputs also take every way of the file's own branches and loops.", class_="muted")


def _lines(report: ParityReport, run: Run, index: int) -> Iterator[Html]:
    rows = []
    for site in report.paths:
        state = ("equal", "covered") if not site.uncovered else ("unusable", "not covered")
        accepted = [way for way in site.accepted if way not in site.taken]
        rows.append(
            cells(
                f"{run.shown(site.file)}:{site.line}",
                tag("code", site.label),
                _badge(*state),
                ", ".join(site.taken) or "none",
                ", ".join(never(site)) + (f" (accepted: {', '.join(accepted)})" if accepted else ""),
            )
        )
    yield tag("h3", "Paths", id=f"t{index}-paths")
    if report.searched:
        yield tag("p", report.searched, class_="muted")
    yield table("Staged branches and loops", ["line", "code", "result", "taken", "never taken"], rows)


def _facts(report: ParityReport, index: int) -> Iterator[Html]:
    """What took part: operators, tolerances, versions."""
    yield tag("h3", "Conditions", id=f"t{index}-conditions")
    yield tag("p", graph_line(report) or "There is no ONNX file.")
    for line in [*widened_lines(report), *recorded_lines(report)]:
        yield tag("p", line)
    parts = []
    if report.graph:
        rows = [cells(tag("code", kind), count, numeric=[1]) for kind, count in report.graph.items()]
        parts.append(_titled("Operators of the ONNX file", ["operator", "nodes"], rows, 1))
    if report.tolerances:
        tolerances = [
            cells(tag("code", dtype), f"{bound.rtol:g}", f"{bound.atol:g}", numeric=[1, 2])
            for dtype, bound in report.tolerances.items()
        ]
        parts.append(_titled("Tolerances", ["dtype", "relative", "absolute"], tolerances, 1, 2))
    if report.versions:
        versions = [cells(name, version) for name, version in report.versions.items()]
        parts.append(_titled("Versions", ["library", "version"], versions))
    if parts:
        yield tag("details", tag("summary", "Operators, tolerances and versions"), tag("div", parts, class_="facts"))


def _titled(title: str, titles: Sequence[str], rows: list[Html], *numeric: int) -> Html:
    return tag("section", tag("h4", title), table(title, titles, rows, numeric=numeric))
