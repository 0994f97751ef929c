"""Names of files and modules on the command line and in settings: what no system takes is told before it is asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace

# The options that name files, folders or modules.
_OPTIONS = ("target", "targets", "place", "folder", "output", "inputs", "onnx", "baseline", "reproducer", "save_inputs")
# Of these the loader of targets, and who writes the file, say what is wrong with an empty one.
_TOLD_ELSEWHERE = ("target", "targets", "place", "output")
# What file systems take for a part of a path, and Linux for the whole.
_LONGEST_PART, _LONGEST = 255, 4096
_SHOWN = 40


def require_name(text: str) -> None:
    """Accept what may be the name of a file, a folder or a module.

    Raises:
        UsageError: it has control characters (a line break would break what is printed), is too long, or has bytes
            that are no text.
    """
    shown = repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
    if not is_text(text):
        raise UsageError(f"{shown} is no text in this locale", hint="PYTHONUTF8=1, or a locale with UTF-8")
    if any(character < " " or character == "\x7f" for character in text):
        raise UsageError(f"{shown} is no name of a file or module")
    size = len(os.fsencode(text))
    if size > _LONGEST or any(len(os.fsencode(part)) > _LONGEST_PART for part in Path(text).parts):
        raise UsageError(f"{shown} is too long a name: {size} bytes")


def is_text(name: str) -> bool:
    """Whether a name can be written into a file: Python has surrogates for bytes that it could not decode."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_names(options: Namespace) -> None:
    """The same of all options of a command.

    Raises:
        UsageError: one is none.
    """
    for option in _OPTIONS:
        value = getattr(options, option, None)
        if value == "" and option not in _TOLD_ELSEWHERE:
            raise UsageError(f"--{option.replace('_', '-')} names no file", hint="leave it out, or name one")
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                require_name(text)
    for each in getattr(options, "format", ()):
        require_name(each.file or "")
