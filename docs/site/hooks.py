"""What MkDocs calls while it builds the site: pages that come from the code, and links that fit the site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from generated import ROOT, SECTIONS, error_pages, sample_pages
from links import PUBLISHED, with_site_links
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of error codes and samples, and the files at the top of the repository that are pages."""
    for name, text in {**error_pages(), **sample_pages()}.items():
        files.append(File.generated(config, name, content=text))
    for source, name in PUBLISHED.items():
        if name != "index.md":
            files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put the generated sections into a page, and let its links fit the site."""
    linked = with_site_links(markdown, page.file.src_uri)
    return re.sub(r"^<!-- generated: (\w+) -->$", lambda found: SECTIONS[found[1]](), linked, flags=re.MULTILINE)


def on_page_content(html: str, **_: Any) -> str:
    """Leave out the roles of Sphinx that docstrings have before names in backquotes."""
    return re.sub(r":\w+:(?=<code>)", "", html)
