"""HTML and SVG elements as text. What is not markup already is escaped, so that no name or message can become any.

Source: HTML Living Standard, https://html.spec.whatwg.org/multipage/syntax.html (escapes, elements without content).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_VOID = {"br", "col", "hr", "input", "link", "meta"}
# Characters that no document may hold, and halves of surrogate pairs, which no encoding can write.
_NOT_HTML = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Html(str):
    """Text that is markup."""

    __slots__ = ()


Content = str | int | Iterable["Content"] | None


def tag(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Html:
    """An element. In an attribute's name ``_`` becomes ``-``, one at the end is dropped; None and False leave it out.

    Strings among the content are escaped unless they are :class:`Html`; iterables give their elements.
    """
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        opening += f" {attribute}" if value is True else f' {attribute}="{_escaped(str(value))}"'
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{joined(content)}</{name}>")


def joined(content: Content) -> Html:
    """Content as markup."""
    if content is None:
        return Html()
    if isinstance(content, Html):
        return content
    if isinstance(content, (str, int)):
        return Html(_escaped(str(content)))
    return Html("".join(joined(each) for each in content))


def _escaped(text: str) -> str:
    return escape(_NOT_HTML.sub("\ufffd", text), quote=True)


def scrolling(label: str, *content: Content) -> Html:
    """A part of the page that scrolls sideways by itself, with the keyboard too."""
    return tag("div", *content, class_="scroll", role="group", aria_label=label, tabindex=0)


def table(
    caption: str, titles: Sequence[Content], rows: Iterable[Html], *, name: str = "", numeric: Iterable[int] = ()
) -> Html:
    """A table with a caption. The script makes its columns sort; ``numeric`` are the places of those with numbers."""
    right = set(numeric)
    head = [
        tag("th", title, scope="col", class_="number" if place in right else None) for place, title in enumerate(titles)
    ]
    return scrolling(
        caption,
        tag(
            "table",
            tag("caption", caption, class_="hidden"),  # a heading says it to the eye
            tag("thead", tag("tr", head)),
            tag("tbody", rows),
            class_="sorts",
            id=name or None,
        ),
    )


def cells(*values: Content, numeric: Iterable[int] = ()) -> Html:
    """A row of a table; its first cell is the row's header."""
    right = set(numeric)
    kind = ["number" if place in right else None for place in range(len(values))]
    first, *others = values
    return tag(
        "tr",
        tag("th", first, scope="row", class_=kind[0]),
        [tag("td", value, class_=kind[place]) for place, value in enumerate(others, 1)],
    )
