"""Links between pages of the site, from links between files of the repository.

Pages are read in the repository, too, so they link to files. On the site some of these files are pages elsewhere, and
others are none: such a link becomes the file's name alone.
"""

from __future__ import annotations

import posixpath
import re

# Files outside docs/ that are pages of the site.
PUBLISHED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"^<!-- file: (\S+) -->\n(```\w+)$", re.MULTILINE)
_MARKER = re.compile(r"^<!-- [^\n]*? -->\n(?=```)", re.MULTILINE)


def on_site(path: str) -> str | None:
    """The page of the site that a file of the repository is, or None."""
    if path in PUBLISHED:
        return PUBLISHED[path]
    if path.rstrip("/") == "samples":
        return "gallery/index.md"
    if path.startswith("samples/"):
        return f"gallery/{posixpath.basename(path).removesuffix('.py')}.md"
    if path.startswith("docs/") and not path.startswith("docs/site"):
        return path.removeprefix("docs/")
    return None


def with_site_links(text: str, page: str) -> str:
    """The text of a page whose links lead to pages of the site, with files' names in place of markers before blocks."""
    home = next((path for path, name in PUBLISHED.items() if name == page and page != "index.md"), f"docs/{page}")
    titled = _FILE.sub(lambda found: f'{found[2]} title="{found[1]}"', text)
    parts = _FENCED.split(_MARKER.sub("", titled))
    parts[::2] = [_LINK.sub(lambda found: _link(found, home, page), part) for part in parts[::2]]
    return "".join(parts)


def _link(found: re.Match[str], home: str, page: str) -> str:
    label, target = found[1], found[2]
    if "://" in target or target.startswith(("#", "mailto:")):
        return found[0]
    path, hash_, anchor = target.partition("#")
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(home), path))
    there = on_site(inside)
    if there is None:
        return label if "`" in label else f"`{label}`"
    return f"[{label}]({posixpath.relpath(there, posixpath.dirname(page) or '.')}{hash_}{anchor})"
