"""What the pages show is what happens: their blocks run in order, and print what stands there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dy2st.cli import init
from tests.docs.page_blocks import PAGES, ROOT, PageRunner, blocks, stable, with_outputs

# Markers of blocks that other tests look at.
ELSEWHERE = {"ci", "test", "station"}
HERE = {"file", "run", "python", "output"}
RUN = [page for page in PAGES if any(each.kind in HERE for each in blocks(page.read_text()))]
TESTS = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


def named(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", RUN, ids=named)
def test_page_shows_what_happens(page, folder, dy2st_command, monkeypatch):
    """``UPDATE_SNAPSHOTS=1`` writes what is printed into the page instead."""
    # `dy2st init` warns where this clone comes from nowhere
    monkeypatch.setattr(init, "requirement", lambda: "dy2st @ git+https://host.org/team/dy2st@c0ffee")

    def command(arguments):
        program, *rest = arguments
        if program == "dy2st":
            done = dy2st_command(*rest)
            return done.code, (done.out + done.err).replace("<tmp>/", "")
        assert program in {"pytest", "python"}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        plugin = ["-m", "pytest", "-p", "dy2st.pytest_plugin", "-p", "no:cacheprovider"] if program == "pytest" else []
        line = [sys.executable, *plugin, *rest]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, (done.stdout + done.stderr).replace(f"{folder}/", "")

    sys.path.insert(0, str(folder))  # blocks import the page's files; the fixture puts the path back
    runner = PageRunner(folder, command)
    text = page.read_text()
    for each in blocks(text):
        runner.run(each)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        page.write_text(with_outputs(text, [printed for _, printed in runner.outputs]))
        return
    for shown, printed in runner.outputs:
        assert stable(printed) == stable(shown)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_says_how_it_is_checked(page):
    for each in blocks(page.read_text()):
        if each.kind == "not run":
            assert each.detail, each.text
        elif each.kind in ELSEWHERE:
            assert f'"{each.marker}"' in TESTS or each.kind == "station" or "test: reader" in each.marker, each.marker
        else:
            assert each.kind in HERE, f"a block of {named(page)} has no marker:\n{each.text}"
