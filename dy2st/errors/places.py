"""How files are named in what is printed: from the working folder where they lie below it, else in full."""

from __future__ import annotations

import os
import re
from pathlib import Path


def from_here(text: str) -> str:
    """A text, or a path alone, with the files below the working folder named from there."""
    try:
        folder = str(Path.cwd())
    except OSError:  # it is gone
        return text
    if folder == os.path.dirname(folder):  # noqa: PTH120 - the root: everything lies below it
        return text
    return re.sub(rf"(?<![\w./\\-]){re.escape(folder + os.sep)}", "", text)
