"""The picture of the file's graph: boxes in layers as inline SVG; what is inside an ``If`` or a loop opens below it.

Each box leads to its line of the source, and each line to its box. All of it works without the page's script.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from dy2st.report.file_arms import SOME_TRIP
from dy2st.report.layered_layout import layered
from dy2st.report.markup import Html, scrolling, tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dy2st.report.file_arms import FileSite
    from dy2st.report.graph_drawing import Box, Drawing

_WIDTH, _HEIGHT, _PILL, _LAYER, _GAP, _EDGE = 272, 48, 28, 84, 20, 10
_LETTER = 7.3  # the width of a character of the monospaced text
_OPEN_AT_FIRST = 60  # boxes of a graph with all that is in it
_PARTS = {"then_branch": "then", "else_branch": "else", "body": "body"}


def graph_section(drawing: Drawing, name: str, lines: Mapping[tuple[str, int], str], sites: Sequence[FileSite]) -> Html:
    """The picture of a file. ``name`` begins its ids, ``lines`` are the ids of source lines, ``sites`` what ran."""
    taken: dict[str, dict[str, list[str]]] = {}
    for site in sites:
        for way in ("then", "else", SOME_TRIP):
            taken.setdefault(site.node, {}).setdefault(way, []).extend(site.takers(way))
    return tag(
        "div",
        tag(
            "p",
            "From the inputs at the top to the outputs at the bottom; the nodes of a line are one box. "
            "A box leads to its line. Constants and weights are left out.",
            class_="muted",
        ),
        list(_graph(drawing, name, "the graph", lines, taken, is_open=drawing.size <= _OPEN_AT_FIRST)),
        class_="graph",
    )


def _graph(
    drawing: Drawing,
    name: str,
    label: str,
    lines: Mapping[tuple[str, int], str],
    taken: Mapping[str, Mapping[str, Sequence[str]]],
    *,
    is_open: bool,
) -> Iterator[Html]:
    if not drawing.boxes:
        yield tag("p", f"{drawing.nodes} nodes: too many to be drawn.", class_="muted")
        return
    yield scrolling(f"Picture of {label}", _svg(drawing, name, label, lines))
    for place, box in enumerate(drawing.boxes):
        if not box.inner:
            continue
        node = f"{box.ops[0]} {box.names[0]}"
        where = "" if box.line is None else f"line {box.line}: "
        ways = taken.get(box.names[0], {})
        parts = []
        for number, inner in enumerate(box.inner):
            part = _PARTS.get(inner.name, inner.name)
            parts.append(
                tag(
                    "section",
                    tag("p", tag("strong", part), " ", _ran(ways, part), class_="part"),
                    list(
                        _graph(
                            inner,
                            f"{name}-{place}-{number}",
                            f"{part} of {node}",
                            lines,
                            taken,
                            is_open=is_open,
                        )
                    ),
                )
            )
        yield tag(
            "details",
            tag("summary", where, tag("code", box.title or node), tag("span", f" {node}", class_="muted")),
            tag("div", parts, class_="parts", id=f"{name}-{place}-inner", tabindex=-1),
            class_="inner",
            open=is_open,
        )


def _ran(ways: Mapping[str, Sequence[str]], part: str) -> Html | None:
    """On which inputs a subgraph ran, where that is known."""
    key = SOME_TRIP if part == "body" else part
    if key not in ways:
        return None
    inputs = sorted(set(ways[key]), key=lambda name: (len(name), name))
    if not inputs:
        return tag("span", tag("span", "✗", aria_hidden="true"), " never ran", class_="badge bad")
    shown = ", ".join(inputs[:5]) + (", …" if len(inputs) > 5 else "")  # noqa: PLR2004 - as many as a line has room for
    return tag("span", f"ran on input{'' if len(inputs) == 1 else 's'} {shown}", class_="muted")


def _svg(drawing: Drawing, name: str, label: str, lines: Mapping[tuple[str, int], str]) -> Html:
    boxes = drawing.boxes
    widths = [
        _WIDTH if box.kind == "nodes" else max(64, round(len(_cut(box.title, 30)) * _LETTER) + 28) for box in boxes
    ]
    last = [place for place, box in enumerate(boxes) if box.kind == "output"]
    layout = layered(widths, drawing.edges, last=last, gap=_GAP)
    parts: list[Html] = []
    for (above, below), route in zip(drawing.edges, layout.routes, strict=True):
        parts.append(_edge(route, _height(boxes[above]), _height(boxes[below])))
    for place, (box, (x, layer)) in enumerate(zip(boxes, layout.centres, strict=True)):
        top = _EDGE + layer * _LAYER + (_HEIGHT - _height(box)) / 2
        parts.append(_box(box, f"{name}-{place}", x - widths[place] / 2 + _EDGE, top, widths[place], lines))
    width = round(layout.width) + 2 * _EDGE
    height = (layout.layers - 1) * _LAYER + _HEIGHT + 2 * _EDGE
    return tag(
        "svg",
        parts,
        role="group",
        aria_label=f"Picture of {label}: {drawing.nodes} nodes in {len(boxes)} boxes",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
    )


def _height(box: Box) -> int:
    return _HEIGHT if box.kind == "nodes" else _PILL


def _edge(route: Sequence[tuple[float, int]], above: int, below: int) -> Html:
    """A curve through the points of a route, with a point of an arrow at its end."""
    points = [(x + _EDGE, _EDGE + layer * _LAYER + _HEIGHT / 2) for x, layer in route]
    first, last = points[0], points[-1]
    points[0] = first[0], first[1] + above / 2
    points[-1] = last[0], last[1] - below / 2 - 5
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        path += f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}"
    x, y = points[-1]
    arrow = f"M{x - 4:g} {y:g}L{x + 4:g} {y:g}L{x:g} {y + 5:g}z"
    return tag("g", tag("path", d=path, class_="edge"), tag("path", d=arrow, class_="arrow"))


def _box(box: Box, name: str, x: float, top: float, width: int, lines: Mapping[tuple[str, int], str]) -> Html:
    if box.kind != "nodes":
        title = _cut(box.title, 30)
        return tag(
            "g",
            tag("title", f"{box.kind} {box.title}"),
            tag("rect", x=x, y=top, width=width, height=_PILL, rx=_PILL / 2),
            tag("text", title, x=x + width / 2, y=top + 18, text_anchor="middle"),
            class_=f"box {box.kind}",
            id=name,
        )
    number = "" if box.line is None else f"{box.line}"
    said = f"{box.title or 'no line of the source'}: {_counted(box.ops)}"
    room = int((width - 24) / _LETTER)
    under = f"{_counted(box.ops)}, opens below" if box.inner else _counted(box.ops)
    shapes = [
        tag("title", said),
        tag("rect", x=x, y=top, width=width, height=_HEIGHT, rx=6),
        tag(
            "text",
            tag("tspan", number, class_="axis"),
            f"{' ' if number else ''}{_cut(box.title or box.names[0], room - len(number) - 1)}",
            x=x + 12,
            y=top + 20,
        ),
        tag("text", _cut(under, room), x=x + 12, y=top + 38, class_="axis"),
    ]
    kind = "box control" if box.inner else "box"
    target = f"{name}-inner" if box.inner else lines.get((box.file, box.line or 0))
    if target is None:
        return tag("g", shapes, class_=kind, id=name)
    spoken = f"line {box.line}, {said}" if box.line is not None else said
    return tag("a", shapes, href=f"#{target}", class_=kind, id=name, aria_label=spoken)


def _counted(ops: Sequence[str]) -> str:
    """``Mul 3, Add``."""
    return ", ".join(kind if count == 1 else f"{kind} {count}" for kind, count in Counter(ops).items())


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 1, 0)]}…"
