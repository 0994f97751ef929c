"""The code blocks of a Markdown page, and what runs them in order, so that a page shows what happens.

A marker stands on the line before a block and says what becomes of it:

=======================  =====================================================================
``<!-- file: NAME -->``  the block is written to the page's own folder under this name
``<!-- run -->``         each command of the block is run there; ``<!-- run: 2 -->`` expects exit code 2
``<!-- python -->``      the block runs as Python, with the names of the blocks before it
``<!-- output -->``      what the block before has printed
=======================  =====================================================================

Blocks with another marker are checked by a test of their own, or say why they are not run.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
# Pages, without the machinery of the site that lies beside them.
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if "site" not in path.parts)]
_BLOCK = re.compile(r"(?:^<!-- ([^\n]*?) -->\n)?^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What differs from one run to the next: a file's size (the lengths of paths are in it), a duration, versions.
_UNSTABLE = re.compile(r"\d+(?:\.\d+)?(?= (?:kB|s|ms)\b)|(?<=^recorded with ).*", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: the marker before it (empty if there is none), its language, its text."""

    marker: str
    language: str
    text: str

    @property
    def kind(self) -> str:
        """The marker's word: ``run`` of ``run: 2``."""
        return self.marker.partition(":")[0]

    @property
    def detail(self) -> str:
        """What the marker says after its word: ``2`` of ``run: 2``."""
        return self.marker.partition(":")[2].strip()


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(marker or "", language, body) for marker, language, body in _BLOCK.findall(text)]


def block(path: Path, marker: str) -> str:
    """The text of the one block of a page that has this marker."""
    (found,) = [each.text for each in blocks(path.read_text()) if each.marker == marker]
    return found


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def links(text: str) -> list[str]:
    """Where a page's links lead."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", plain)


def with_outputs(text: str, outputs: list[str]) -> str:
    """The page with these texts in its ``output`` blocks, in order."""
    left = iter(outputs)

    def replaced(match: re.Match[str]) -> str:
        if match[1] != "output":
            return match[0]
        return f"<!-- output -->\n```{match[2]}\n{next(left)}```"

    return _BLOCK.sub(replaced, text)


def stable(text: str) -> str:
    """A text without the figures that differ from run to run, and without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in _UNSTABLE.sub("…", text).strip("\n").splitlines())


@dataclass
class PageRunner:
    """Runs the blocks of one page. ``command`` runs an argument list and returns its exit code and what it printed."""

    folder: Path
    command: Callable[[list[str]], tuple[int, str]]
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "example"})
    printed: str = ""
    outputs: list[tuple[str, str]] = field(default_factory=list)
    """What each ``output`` block says, and what was printed."""

    def run(self, found: Block) -> None:
        """Do what the block's marker says."""
        if found.kind == "file":
            path = self.folder / found.detail
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(found.text)
            sys.modules.pop(path.stem, None)  # an edited file is another module, as in a new process
            # Python takes what it has compiled for up to date if a file has changed within a second, and not its size.
            shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
            linecache.checkcache(str(path))
        elif found.kind == "run":
            self.printed = "".join(self._commands(found))
        elif found.kind == "python":
            self.printed = self._python(found)
        elif found.kind == "output":
            self.outputs.append((found.text, self.printed))

    def _commands(self, found: Block) -> list[str]:
        lines = found.text.replace("\\\n", " ").splitlines()
        told = []
        for line in lines:
            code, printed = self.command(shlex.split(line, comments=True))
            told.append(printed)
            assert code == int(found.detail or 0), f"{line}: exit code {code}\n{printed}"
        return told

    def _python(self, found: Block) -> str:
        # A file of its own: what is converted has to have a source.
        file = self.folder / f"block_{len(list(self.folder.glob('block_*.py')))}.py"
        file.write_text(found.text)
        out = io.StringIO()
        # A library's log is nothing that a page shows, and would be taken for what the next command prints.
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(found.text, str(file), "exec"), self.names)
        return out.getvalue()
