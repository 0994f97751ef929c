"""Writes the pictures of the HTML report that the pages show: ``python docs/site/screenshots.py``.

Needs Chromium and the extra ``browser``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "images"
# name: width, height, scheme, and the part of the page that is shown
SHOTS = {
    "report-light": (1200, 860, "light", "t0-source"),
    "report-dark": (1200, 860, "dark", "t0-graph"),
    "report-phone": (390, 860, "light", "t0-source"),
}


def main() -> None:
    """Check a sample, open its report, and keep what is seen."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        command = [sys.executable, "-m", "dy2st", "check", "samples/newton.py:model", "--format", f"html={page}"]
        subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - our own command
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (width, height, scheme, part) in SHOTS.items():
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
            )
            shown = context.new_page()
            shown.goto(f"{page.as_uri()}#{part}")
            shown.screenshot(path=PICTURES / f"{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
