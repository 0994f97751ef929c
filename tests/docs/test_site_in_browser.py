"""The site in a browser: no barrier by axe-core, no page wider than a phone, nothing loaded from elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from threading import Thread

import pytest

from tests.browsers import WIDTHS, barriers, browser
from tests.docs.page_blocks import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra `docs` is not installed"),
]
__all__ = ["browser"]
# One error's page and one sample's stand for the others, which are written from the same lists.
REPEATED = ("reference/errors/", "gallery/")
KEPT = ("reference/errors/D2S221.html", "gallery/index.html", "gallery/newton.html")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args):
        """Say nothing of each request."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of the built site, and the paths of its pages."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-f", ROOT / "docs" / "site" / "mkdocs.yml", "-d", folder]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True)
    pages = sorted(page.relative_to(folder).as_posix() for page in folder.rglob("*.html"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield (
            f"http://127.0.0.1:{server.server_port}/",
            [page for page in pages if page in KEPT or not page.startswith(REPEATED)],
        )
        server.shutdown()


@pytest.mark.parametrize(("width", "scheme"), [("phone", "dark"), ("desk", "light")])
def test_no_barriers_and_no_sideways_scrolling(browser, site, width, scheme):
    address, pages = site
    assert set(KEPT) < set(pages)
    context = browser.new_context(viewport={"width": WIDTHS[width], "height": 800}, color_scheme=scheme)
    found = {}
    for name in pages:
        complaints = found.setdefault(name, [])
        page = context.new_page()
        page.on("pageerror", lambda error, complaints=complaints: complaints.append(str(error)))
        page.on(
            "request",
            lambda request, complaints=complaints: (
                None if request.url.startswith((address, "data:", "blob:")) else complaints.append(request.url)
            ),
        )
        page.goto(address + name)
        if page.evaluate("document.documentElement.scrollWidth") > WIDTHS[width]:
            complaints.append("wider than the window")
        complaints += barriers(page)
        page.close()
    context.close()
    assert {name: complaints for name, complaints in found.items() if complaints} == {}
