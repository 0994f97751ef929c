"""What tests share that open a page in a browser. They run where Chromium and the extra ``browser`` are installed."""

from __future__ import annotations

import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
WIDTHS = {"phone": 375, "desk": 1280}
# The levels A and AA of WCAG 2.2, and what axe-core's authors recommend.
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install dy2st[browser]")
    with api.sync_playwright() as playwright:
        # no sandbox: a container's root user has none, and the page is our own
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


def barriers(page):
    """What axe-core finds wrong on a page: the names of its rules, each with the elements that break it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page, options=RULES).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
