"""The HTML page in a browser: what its script does, that it fits a phone, and that axe-core finds no barrier.

These run where Chromium and the packages of the ``browser`` extra are installed; nothing is downloaded.
"""

from __future__ import annotations

import pytest

from dy2st.report.html import render
from tests.browsers import WIDTHS, barriers, browser

pytestmark = pytest.mark.slow
__all__ = ["browser"]


@pytest.fixture
def opened(browser, runs, tmp_path):
    """A function that opens a run's page; whatever it logs or tries to load fails the test."""
    pages, complaints = [], []

    def open_page(name, *, width=WIDTHS["desk"], scheme="light", script=True):
        file = tmp_path / f"{name}.html"
        file.write_text(render(runs[name]))
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=script
        )
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if request.url == file.as_uri() else complaints.append(request.url))
        page.goto(file.as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.context.close()
    assert complaints == []


def open_all(page):
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["full", "good", "hostile"])
def test_no_barriers_and_no_sideways_scrolling(opened, name, width, scheme):
    page = opened(name, width=WIDTHS[width], scheme=scheme)
    open_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") == WIDTHS[width]
    assert barriers(page) == []


def test_without_its_script(opened):
    page = opened("full", script=False)
    assert page.locator("#theme").is_hidden()
    assert page.locator("th button").count() == 0
    assert (
        page.locator("h1")
        .inner_text()
        .endswith("1 of 5 targets are equal to eager; 1 differs; 3 could not be checked; 1 not covered")
    )


def test_sorting(opened):
    page = opened("full")
    table = page.locator("table.sorts").first
    heading = table.locator("thead th").nth(4)

    def seconds():
        return table.locator("tbody tr td:nth-child(5)").all_inner_texts()

    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert [text for text in seconds() if text] == ["1.2", "2.5"]
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert [text for text in seconds() if text] == ["2.5", "1.2"]
    table.locator("thead th").first.locator("button").click()
    assert heading.get_attribute("aria-sort") is None


def test_the_nodes_of_one_line(opened):
    page = opened("bad")
    nodes = page.locator("details.nodes")
    assert nodes.get_attribute("open") is None
    page.locator("a.of-line[data-line='13']").click()
    rows = nodes.locator("tbody tr:visible")
    assert rows.all_inner_texts() == ["13\tMul\tnode_mul\ty_1, y_2\tmain / node_branch.then_branch"]
    assert page.evaluate("document.activeElement.dataset.line") == "13"
    assert nodes.locator("[role=status]").inner_text() == "1 of 2 rows"
    nodes.get_by_role("button", name="All lines").click()
    assert rows.count() == 2
    nodes.get_by_role("searchbox").fill("branch_then")
    assert rows.count() == 0
    nodes.get_by_role("searchbox").fill("MUL")
    assert rows.count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_systems_until_it_is_chosen(opened, scheme):
    page = opened("good", scheme=scheme)
    button = page.get_by_role("button", name="Dark theme")

    def is_dark():
        red = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
        return int(red) < 128

    assert is_dark() == (scheme == "dark")
    assert button.get_attribute("aria-pressed") == str(scheme == "dark").lower()
    button.click()
    assert is_dark() == (scheme == "light")
    page.reload()
    assert is_dark() == (scheme == "light")


def test_the_keyboard_reaches_the_results_first(opened):
    page = opened("good")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "results"


def test_boxes_open_and_lead_to_their_lines(opened):
    page = opened("bad")
    branch = page.get_by_role("link", name="line 12, if x.sum() > 0: # a comment: If")
    inner = page.locator("details.inner")
    inner.locator("summary").click()
    assert inner.get_attribute("open") is None
    branch.click()
    page.locator("details.inner[open]").wait_for()
    page.locator("a.box").first.click()
    assert page.evaluate("document.querySelector(':target').id") == "t0s0-L12"
    page.get_by_role("link", name="line 13 in the graph").click()
    assert page.evaluate("document.querySelector(':target').tagName") == "a"


def test_only_failures(opened):
    page = opened("full")
    button = page.get_by_role("button", name="Only failures")
    assert page.locator(".target:visible").count() == 5
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator(".target:visible").count() == 4
    assert page.locator("nav[aria-label=Targets] tbody tr:visible").count() == 4
    button.click()
    assert page.locator(".target:visible").count() == 5


def test_a_link_opens_the_target_that_it_leads_to(opened):
    page = opened("full")
    page.get_by_role("link", name="models/good.py").click()
    page.locator("details.target[open]").nth(4).wait_for()


def test_the_navigation_stays_and_says_where_one_is(opened):
    page = opened("bad")
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Source").click()
    page.locator("header nav [aria-current]", has_text="Source").wait_for()
    assert page.locator("header").bounding_box()["y"] == 0


def test_what_scrolls_sideways_says_so(opened):
    page = opened("bad", width=WIDTHS["phone"])
    told = page.locator(".scroll.more + .more-right:visible")
    assert told.count() > 0
    page.evaluate("document.querySelectorAll('.scroll').forEach((each) => { each.scrollLeft = each.scrollWidth })")
    page.locator(".scroll.more").first.wait_for(state="detached")
    assert told.count() == 0
    assert opened("missing").locator(".more-right:visible").count() == 0
