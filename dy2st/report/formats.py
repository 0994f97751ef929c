"""The formats that a run can be written in, by name. A renderer is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dy2st.report.run import Run

# The name on the command line, the module, and what it is for.
FORMATS = {
    "json": ("as_json", "everything, for programs"),
    "junit": ("junit", "test reports of CI systems"),
    "sarif": ("sarif", "code scanning"),
    "github": ("github", "annotations of a workflow's run"),
    "html": ("html", "a page to read, in one file"),
    "markdown": ("markdown", "summaries and comments"),
}


def render(run: Run, name: str) -> str:
    """A run in one format, with a newline at the end."""
    renderer: Callable[[Run], str] = import_module(f"dy2st.report.{FORMATS[name][0]}").render
    return renderer(run)
