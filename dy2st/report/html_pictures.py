"""Pictures of errors as inline SVG: a histogram of their sizes, and a map of where they are.

In the map a cell's size says the same as its colour, and a cross stands for NaN or infinity, so that nothing is said by
colour alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dy2st.report.markup import Html, tag

if TYPE_CHECKING:
    from dy2st.report.model import Picture

LEVELS = 5  # of the map; each is a tenth of the one above
_CELL, _BAR, _GAP, _HEIGHT = 12, 30, 8, 96
_LEAST = 3  # pixels of a bar that is not empty


def pictures_of(picture: Picture, title: str) -> Html:
    """Both pictures of one output, each with its legend."""
    drawn = [_figure(_histogram(picture, title), _about_sizes(picture))] if picture.counts else []
    drawn.append(_figure(_map(picture, title), _about_places(picture)))
    return tag("div", drawn, class_="pictures")


def _figure(svg: Html, caption: Html) -> Html:
    return tag("figure", tag("div", svg, class_="scroll", role="group", aria_label="Picture", tabindex=0), caption)


def _histogram(picture: Picture, title: str) -> Html:
    highest = max(picture.counts)
    width = len(picture.counts) * (_BAR + _GAP) + 2 * _GAP
    parts = []
    for place, count in enumerate(picture.counts):
        x = _GAP + place * (_BAR + _GAP)
        # a few elements among millions are what matters: the bars are logarithmic
        share = math.log1p(count) / math.log1p(highest)
        height = max(round(share * _HEIGHT), _LEAST) if count else 0
        top = _HEIGHT - height + 18
        parts.append(tag("rect", x=x, y=top, width=_BAR, height=height, class_="bar"))
        if count:
            parts.append(tag("text", _short(count), x=x + _BAR / 2, y=top - 4, text_anchor="middle"))
        label = power(picture.edges[place]) if picture.edges[place] else "less"
        parts.append(tag("text", label, x=x + _BAR / 2, y=_HEIGHT + 32, text_anchor="middle", class_="axis"))
    line = tag("line", x1=0, y1=_HEIGHT + 18.5, x2=width, y2=_HEIGHT + 18.5, class_="axis-line")
    spoken = ", ".join(
        f"{count} from {edge:g}" for count, edge in zip(picture.counts, picture.edges, strict=False) if count
    )
    return _svg(f"Histogram of errors, {title}: {spoken}", width, _HEIGHT + 40, [*parts, line])


def _map(picture: Picture, title: str) -> Html:
    rows, columns = len(picture.grid), len(picture.grid[0])
    shapes: dict[str, str] = {}  # one path for each level: a page may have many maps
    for row, errors in enumerate(picture.grid):
        for column, error in enumerate(errors):
            x, y = column * _CELL, row * _CELL
            if not math.isfinite(error):
                shapes["special"] = shapes.get("special", "") + f"M{x + 2.5} {y + 2.5}l7 7m0 -7l-7 7"
            elif error > 0:
                step = level(error, picture.largest)
                side = _side(step)
                at = (_CELL - side) / 2
                kind = f"level{step}"
                shapes[kind] = shapes.get(kind, "") + f"M{x + at:g} {y + at:g}h{side:g}v{side:g}h-{side:g}z"
    parts = [tag("rect", width=columns * _CELL, height=rows * _CELL, class_="cell")]
    parts += [tag("path", d=path, class_=kind) for kind, path in sorted(shapes.items())]
    spoken = f"Map of errors, {title}: {rows} rows of {columns} cells, the largest error is {picture.largest:.3g}"
    return _svg(spoken, columns * _CELL, rows * _CELL, parts)


def _side(step: int) -> float:
    """How wide a level's square is, in pixels."""
    return 1.5 + 1.9 * step


def _svg(label: str, width: int, height: int, parts: list[Html]) -> Html:
    return tag("svg", parts, role="img", aria_label=label, width=width, height=height, viewBox=f"0 0 {width} {height}")


def level(error: float, largest: float) -> int:
    """From 1 to ``LEVELS``, the class of the largest errors; each lower one begins at a tenth of the one above."""
    decades = math.log10(largest / error) if largest > error > 0 else 0.0
    return max(1, LEVELS - int(decades))


def _about_sizes(picture: Picture) -> Html:
    total = picture.exact + picture.special + sum(picture.counts)
    special = f", {picture.special} NaN or infinite on one side" if picture.special else ""
    exact = f"{picture.exact} of {total} are exact{special}"
    return tag("figcaption", f"Elements by the power of ten of their error; bars are logarithmic. {exact}.")


def _about_places(picture: Picture) -> Html:
    sizes = [error for row in picture.grid for error in row if 0 < error < math.inf]
    used = {level(error, picture.largest) for error in sizes}
    steps = []
    for step in range(LEVELS, 0, -1):
        bound = picture.largest / 10 ** (LEVELS - step + 1)
        if step in used:
            side = _side(step)
            mark = _mark(tag("rect", x=6 - side / 2, y=6 - side / 2, width=side, height=side, class_=f"level{step}"))
            steps.append(tag("li", mark, f"above {bound:.1g}" if step > 1 else f"up to {bound * 10:.1g}"))
    if picture.special:
        steps.append(tag("li", _mark(tag("path", d="M2.5 2.5l7 7m0 -7l-7 7", class_="special")), "NaN or infinite"))
    text = (
        f"Where the errors are: the largest one in each cell; {shape_text(picture.shape)}, the last dimension across."
    )
    return tag("figcaption", text, tag("ul", steps, class_="legend"))


def _mark(shape: Html) -> Html:
    return tag("svg", shape, width=12, height=12, viewBox="0 0 12 12", aria_hidden="true")


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as ``3 x 4``."""
    return " x ".join(map(str, shape)) or "scalar"


def power(edge: float) -> str:
    """A power of ten as ``1e-7``."""
    return f"1e{round(math.log10(edge))}"


def _short(count: int) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if count >= size:
            return f"{count / (1e3 if unit == 'k' else size):.0f}{unit}"
    return str(count)
