"""Source listings of the page: the user's lines with what ran, the rewritten source beside them, nodes by line."""

from __future__ import annotations

import io
import keyword
import tokenize
from typing import TYPE_CHECKING

from dy2st.report.markup import Html, cells, joined, scrolling, table, tag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dy2st.report.listing import Listing
    from dy2st.report.model import PathSite
    from dy2st.report.run import Run

# What stands in the margin: a sign, and what it says.
_SIGNS = {"ran": ("✓", "ran"), "never": ("✗", "never ran"), "partly": ("◐", "partly ran")}


def line_id(name: str, line: int) -> str:
    """The id of a line of the source, in the listing with this part of the ids."""
    return f"{name}-L{line}"


def listing_section(listing: Listing, name: str, run: Run, boxes: Mapping[tuple[str, int], str]) -> Html:
    """One function; ``name`` is its part of the ids on the page, ``boxes`` are the ids of lines in the picture."""
    place = f"{run.shown(listing.file)}:{listing.first_line}"
    rewritten = tag(
        "div",
        tag("h5", "Rewritten"),
        scrolling(f"{listing.name}, rewritten", tag("pre", tag("code", _highlighted(listing.rewritten)))),
        class_="pane",
    )
    missing = tag("p", "The rewritten source of this function is not at hand.", class_="muted")
    return tag(
        "section",
        tag("h4", tag("code", listing.name), " ", tag("span", place, class_="place")),
        tag(
            "div",
            tag(
                "div",
                tag("h5", "Source"),
                scrolling(f"{listing.name}, source", _source(listing, name, boxes)),
                class_="pane",
            ),
            rewritten if listing.rewritten else missing,
            class_="panes",
        ),
        _nodes(listing, name),
        class_="listing",
    )


def _source(listing: Listing, name: str, boxes: Mapping[tuple[str, int], str]) -> Html:
    marks = dict(listing.marks)
    nodes: dict[int, int] = {}
    for node in listing.nodes:
        nodes[node.line] = nodes.get(node.line, 0) + 1
    rows = []
    for number, code in enumerate(_lines(_highlighted(_dedented(listing.lines))), listing.first_line):
        here = [site for site in listing.sites if site.line == number]
        mark = marks.get(number, "")
        if here:
            mark = "ran"
            if any(site.uncovered for site in here):
                mark = "partly" if any(site.taken for site in here) else "never"
        if marks.get(number) == "never":
            mark = "never"
        sign, words = _SIGNS.get(mark, ("", ""))
        said = [tag("span", sign, aria_hidden="true"), tag("span", words, class_="hidden")] if mark else None
        count = nodes.get(number)
        link = tag("a", _count(count), href=f"#{name}-{number}", class_="of-line", data_line=number) if count else None
        box = boxes.get((listing.file, number))
        picture = (
            tag("a", "graph", href=f"#{box}", class_="of-line", aria_label=f"line {number} in the graph")
            if box
            else None
        )
        rows.append(
            tag(
                "tr",
                tag("th", number, scope="row"),
                tag("td", said, class_="sign"),
                tag("td", tag("code", code), [_ways(site) for site in here], class_="code"),
                tag("td", link, " " if picture else None, picture),
                class_=mark or None,
                id=line_id(name, number),
                tabindex=-1,
            )
        )
    titles = [
        tag("th", tag("span", "line", class_="hidden"), scope="col"),
        tag("th", tag("span", "ran", class_="hidden"), scope="col"),
        tag("th", "code", scope="col"),
        tag("th", "nodes", scope="col"),
    ]
    return tag(
        "table",
        tag("caption", f"{listing.name}, line by line", class_="hidden"),
        tag("thead", tag("tr", titles)),
        tag("tbody", rows),
        class_="source",
    )


def _ways(site: PathSite) -> Html:
    """What of a construct ran, in words."""
    parts = [f"{', '.join(site.taken)} ran"] if site.taken else []
    accepted = [way for way in site.accepted if way not in site.taken]
    parts += [f"{', '.join(site.uncovered)} never ran"] if site.uncovered else []
    parts += [f"{', '.join(accepted)} accepted"] if accepted else []
    return tag("span", "; ".join(parts), class_="ways missed" if site.uncovered else "ways")


def _nodes(listing: Listing, name: str) -> Html | None:
    if not listing.nodes:
        return None
    ordered = sorted(listing.nodes, key=lambda node: node.line)
    rows = []
    last = None
    for node in ordered:
        row = cells(
            node.line, tag("code", node.op), tag("code", node.name), tag("code", ", ".join(node.outputs)), node.graph
        )
        anchor = f' id="{name}-{node.line}"' if node.line != last else ""
        rows.append(Html(row.replace("<tr>", f'<tr data-line="{node.line}"{anchor} tabindex="-1">', 1)))
        last = node.line
    titles = ["line", "operator", "node", "outputs", "graph"]
    return tag(
        "details",
        tag("summary", f"ONNX nodes of {listing.name} ({len(rows)})"),
        table(f"ONNX nodes of {listing.name}", titles, rows, numeric=[0]),
        class_="nodes",
        id=f"{name}-nodes",
    )


def _count(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"


def _lines(markup: Html) -> list[Html]:
    """Highlighted text line by line: spans that go over several lines are closed and opened anew."""
    lines = []
    open_span = ""
    for line in markup.split("\n"):
        text = open_span + line
        last = text.rfind("<span ")
        if last > text.rfind("</span>"):
            open_span = text[last : text.index(">", last) + 1]
            text += "</span>"
        else:
            open_span = ""
        lines.append(Html(text))
    return lines


def _highlighted(text: str) -> Html:
    """Python source with keywords, strings and comments marked; text that is no whole source stays plain."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return joined(text)
    lines = text.split("\n")
    parts: list[Html] = []
    at = (1, 0)
    for token in tokens:
        kind = _kind(token)
        if kind is not None:
            parts += [joined(_between(lines, at, token.start)), tag("span", token.string, class_=kind)]
            at = token.end
    return joined([*parts, joined(_between(lines, at, (len(lines), len(lines[-1]))))])


def _dedented(lines: Sequence[str]) -> str:
    """A method's source without the indent of its first line, so that it can be read by itself."""
    indent = len(lines[0]) - len(lines[0].lstrip(" "))
    return "\n".join(line[indent:] if not line[:indent].strip() else line for line in lines)


def _kind(token: tokenize.TokenInfo) -> str | None:
    if token.type == tokenize.COMMENT:
        return "comment"
    if token.type == tokenize.STRING:
        return "string"
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return "keyword"
    return None


def _between(lines: Sequence[str], begin: tuple[int, int], end: tuple[int, int]) -> str:
    (first, left), (last, right) = begin, end
    if first == last:
        return lines[first - 1][left:right]
    return "\n".join([lines[first - 1][left:], *lines[first : last - 1], lines[last - 1][:right]])
