"""The HTML page: well-formed, closed to the network, and no text becomes markup. test_html_browser.py looks at it."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from dy2st.report.html import MOST_PICTURES, render
from dy2st.report.html_pictures import LEVELS, level
from dy2st.report.html_source import _dedented, _highlighted, _lines
from dy2st.report.markup import Html, tag

VOID = {"meta", "br", "input", "link"}


class Page(HTMLParser):
    """Collects the elements; every one must be closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        assert len(dict(attributes)) == len(attributes)
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, name):
        return [attributes for each, attributes in self.elements if each == name]


def test_well_formed(any_run):
    page = Page(render(any_run))
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(names)) == len(names)
    links = {attributes["href"] for attributes in page.all("a")}
    assert all(link.startswith("#") and link[1:] in names for link in links)
    for kind in ("header", "main", "footer", "h1", "style", "script"):
        assert len(page.all(kind)) == 1
    assert render(any_run).partition("</head>")[0].count("<title>") == 1
    assert len(page.all("caption")) == len(page.all("table"))
    assert all("aria-label" in each for each in page.all("svg") if each.get("role") == "img")


def test_headings_go_down_by_one(any_run):
    levels = [int(name[1]) for name, _ in Page(render(any_run)).elements if re.fullmatch(r"h[1-6]", name)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_nothing_is_loaded(any_run):
    page = Page(render(any_run))
    for name, attributes in page.elements:
        assert name not in {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"}
        assert not {"src", "srcset", "action", "background", "style"} & set(attributes)
        assert not any(key.startswith("on") for key in attributes)
    (policy,) = [each["content"] for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert not re.search(r"url\(|@import|https?:", render(any_run).partition("</style>")[0])


def test_texts_stay_texts(runs):
    page = Page(render(runs["hostile"]))
    assert len(page.all("script")) == 1
    assert not any("href" in each and "http" in each["href"] for each in page.all("a"))
    assert sum("<script>alert(1)</script>" in text for text in page.texts) > 10
    text = render(runs["hostile"])
    assert text.count("alert(1)") == text.count("&lt;script&gt;alert(1)&lt;")
    assert "\x00" not in text
    text.encode()


def test_every_kind_is_there(runs):
    text = " ".join(Page(render(runs["full"])).texts)
    for part in (
        "1 of 5 targets are equal to eager; 1 differs; 3 could not be checked; 1 not covered",
        "eager itself raises ValueError",
        "RuntimeError: no kernel",
        "an int is used as a key",
        "keep it in a tensor",
        "node_mul",
        "main / node_branch.then_branch",
        "if_12 = d2s.if_(x.sum() > 0)",
        "then ran; else never ran",
        "no trip accepted",
        "opset 20, 4 nodes, with 1 If",
        "searched 100 runs: no input takes them",
    ):
        assert part in text


def test_lines_say_whether_they_ran(runs):
    rows = re.findall(
        r'<tr(?: class="(\w+)")? id="\S+" tabindex="-1"><th scope="row">(\d+)</th><td', render(runs["bad"])
    )
    assert {int(line): kind for kind, line in rows} == {
        11: "",
        12: "partly",
        13: "ran",
        14: "never",
        15: "never",
        16: "",
        17: "",
        18: "",
    }


def test_lines_and_boxes_lead_to_each_other(runs):
    page = Page(render(runs["bad"]))
    links = {(each.get("aria-label", ""), each["href"]) for each in page.all("a")}
    assert ("line 12 in the graph", "#t0g-1") in links
    assert ("line 13 in the graph", "#t0g-2-0-0") in links
    assert ("line 12, if x.sum() > 0:  # a comment: ReduceSum, Greater", "#t0s0-L12") in links
    assert ("line 12, if x.sum() > 0:  # a comment: If", "#t0g-2-inner") in links
    text = " ".join(page.texts)
    assert "ran on inputs 0, 1" in text
    assert "never ran" in text
    assert "4000 nodes: too many to be drawn." in text


def test_a_refusal_has_its_line_and_where_there_is_more(runs):
    page = Page(render(runs["refused"]))
    text = " ".join(page.texts)
    assert "d = {int(x.sum()): x}\n       ^^^^^^^^" in text
    assert "dy2st explain D2S241" in text


def test_a_path_has_its_line_without_a_mark_at_a_column_of_the_whole_file(runs):
    text = " ".join(Page(render(runs["bad"])).texts)
    assert "if x.sum() > 0:" in text
    assert not re.search(r"(if x\.sum\(\) > 0:|while \(x < 5\)\.any\(\):)\n +\^", text)


def test_targets_that_passed_are_folded(runs):
    page = Page(render(runs["full"]))
    targets = [each for each in page.all("details") if each.get("class") == "target"]
    assert [("open" in each, "data-passed" in each) for each in targets] == [(False, True)] + [(True, False)] * 4
    assert not [each for each in Page(render(runs["good"])).all("details") if each.get("class") == "target"]


def test_only_the_worst_are_drawn(runs):
    (target,) = runs["bad"].targets
    (result, *_) = target.report.inputs
    picture = result.stages[1].pictures[0]
    many = tuple(
        replace(picture, output=f"output[{number}]", largest=float(number)) for number in range(MOST_PICTURES + 9)
    )
    report = replace(target.report, inputs=(replace(result, stages=(replace(result.stages[1], pictures=many),)),))
    text = render(replace(runs["bad"], targets=(replace(target, report=report),)))
    assert text.count('class="drawing"') == MOST_PICTURES
    assert f"({MOST_PICTURES} of {MOST_PICTURES + 9} outputs, those furthest off)" in text


@pytest.mark.parametrize(("error", "expected"), [(8.0, LEVELS), (1.0, LEVELS), (0.5, LEVELS - 1), (1e-9, 1)])
def test_levels_of_the_map(error, expected):
    assert level(error, 8.0) == expected


def test_elements():
    assert tag("p", "a<b", Html("<br>"), None, ["x", 3]) == "<p>a&lt;b<br>x3</p>"
    assert tag("td", class_="a\"b'", data_line=3, hidden=True, id=None, aria_label=False) == (
        '<td class="a&quot;b&#x27;" data-line="3" hidden></td>'
    )


@pytest.mark.parametrize(
    "source",
    [
        'def f(x):\n    return \'a\' if x else """b\n  c"""  # <d>\n',
        "    def forward(self, x):\n        '''two\n        lines'''\n        if x: pass\n",
        "    @decorated\n    def f():\n\n        return None\n",
        "lambda x: x if x else (",
        "not python at all ' <&>",
        "",
    ],
)
def test_highlighting_keeps_the_text(source):
    text = _dedented(source.split("\n"))
    marked = _highlighted(text)
    page = Page(marked)
    assert "".join(page.texts) == text
    assert ["".join(Page(line).texts) for line in _lines(marked)] == text.split("\n")


def test_a_method_is_shown_without_its_indent():
    lines = ["    def f(self):", '        """one', '  two"""', "", "        return 1"]
    assert _dedented(lines) == 'def f(self):\n    """one\n  two"""\n\n    return 1'
