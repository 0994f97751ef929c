"""The parts of the site that come from the code, and the site itself where MkDocs is installed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from tests.docs.page_blocks import PAGES, ROOT, blocks

SITE = ROOT / "docs" / "site"


@pytest.fixture
def site(monkeypatch):
    """A function that imports a module of ``docs/site``, as MkDocs does."""
    names = ("generated", "links")
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    monkeypatch.syspath_prepend(str(SITE))
    yield import_module
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(others)


def test_every_code_has_a_page_with_both_examples(site):
    from dy2st.errors.pages import kinds

    pages = site("generated").error_pages()
    assert set(pages) == {f"reference/errors/{code}.md" for code in kinds()}
    for code, kind in kinds().items():
        page = pages[f"reference/errors/{code}.md"]
        assert page.startswith(f"# {code} {kind.__name__}\n")
        assert ("This raises it" in page) == ("Before:" in kind.__doc__)
        assert ("Write this instead" in page) == ("After:" in kind.__doc__)
        for each in blocks(page):
            ast.parse(each.text)
    index = site("generated").error_index()
    assert all(f"(errors/{code}.md)" in index for code in kinds())


def test_every_option_has_a_row(site):
    from dy2st.cli.main import command_parsers

    text = site("generated").command_help()
    for name, parser in command_parsers().items():
        section = text.partition(f"### dy2st {name}\n")[2].partition("\n### ")[0]
        actions = [action for action in parser._actions if action.dest != "help"]
        options = [option for action in actions for option in action.option_strings]
        assert [option for option in options if f"`{option}" not in section] == []


def test_operators_are_those_that_are_translated(site):
    from dy2st.onnx.translations.control_flow import TRANSLATIONS

    generated = site("generated")
    files = (ROOT / "dy2st" / "onnx" / "translations").glob("[a-z]*.py")
    listed = {name for path in files for name in generated.translated_names(path)}
    assert listed == {str(each).split(".")[1] for each in TRANSLATIONS if str(each).startswith("aten.")}


def test_every_sample_has_a_page(site):
    pages = site("generated").sample_pages()
    samples = {path.stem for path in (ROOT / "samples").glob("*.py")}
    assert set(pages) == {f"gallery/{name}.md" for name in samples}
    assert site("generated").sample_index() in (ROOT / "docs" / "gallery" / "index.md").read_text()
    for name in samples:
        assert f"# {name}\n" in pages[f"gallery/{name}.md"]
        assert (ROOT / "samples" / f"{name}.py").read_text().rstrip() in pages[f"gallery/{name}.md"]


@pytest.mark.parametrize(
    ("page", "link", "there"),
    [
        ("how-to/state.md", "[a](../tutorial.md#x)", "[a](../tutorial.md#x)"),
        ("how-to/state.md", "[a](../../samples/newton.py)", "[a](../gallery/newton.md)"),
        ("how-to/state.md", "[a](../../dy2st/cli/main.py)", "`a`"),
        ("limits.md", "[`a`](../dy2st)", "`a`"),
        ("limits.md", "[a](https://onnx.ai)", "[a](https://onnx.ai)"),
        ("limits.md", "[a](../CONTRIBUTING.md)", "[a](contributing.md)"),
        ("contributing.md", "[a](docs/features.md)", "[a](features.md)"),
        ("contributing.md", "[a](README.md)", "[a](index.md)"),
        ("gallery/index.md", "[a](../../samples)", "[a](index.md)"),
        ("limits.md", "```\n[a](../dy2st)\n```", "```\n[a](../dy2st)\n```"),
        ("limits.md", "<!-- run -->\n```sh\nls\n```", "```sh\nls\n```"),
        ("limits.md", "<!-- file: a.py -->\n```python\n1\n```", '```python title="a.py"\n1\n```'),
    ],
)
def test_links_fit_the_site(site, page, link, there):
    assert site("links").with_site_links(link, page) == there


def test_every_page_is_in_the_navigation():
    named = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", (SITE / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if "docs" in page.relative_to(ROOT).parts}
    assert sorted(named) == sorted({*pages, "contributing.md", "changelog.md"})


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra `docs` is not installed")
def test_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", SITE / "mkdocs.yml", "-d", tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "reference" / "errors" / "D2S241.html").is_file()
