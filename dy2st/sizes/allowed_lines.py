"""The lines at which the user allows a dynamic size to be fixed."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dy2st.errors import Location, UsageError


class AllowedLines:
    """Lines given as ``12`` or ``"12"`` (of the model's own file) or ``"models.py:12"``.

    Raises:
        UsageError: an entry is neither.
    """

    def __init__(self, model: Any, lines: Iterable[int | str] | int | str) -> None:
        given = [lines] if isinstance(lines, (int, str)) else list(lines)
        own = file_of(model)
        self.lines = [(str(entry), *_parsed(entry, own)) for entry in given]
        self.used: set[str] = set()

    def __call__(self, location: Location) -> bool:
        """Whether the line of ``location`` is among them."""
        for text, filename, line in self.lines:
            if line == location.line and _same_file(filename, location.filename):
                self.used.add(text)
                return True
        return False

    def require_used(self) -> None:
        """Every line that is allowed has fixed something.

        Raises:
            UsageError: one has not.
        """
        for text, _, _ in self.lines:
            if text not in self.used:
                raise UsageError(
                    f"nothing is specialised at line {text}, which allow_specialize names",
                    hint="leave it out, or give the line that the error names",
                )


def _parsed(entry: int | str, own: str | None) -> tuple[str | None, int]:
    filename, colon, line = str(entry).rpartition(":")
    if not line.strip().isdecimal() or (colon and not filename):
        raise UsageError(f"{entry!r} is no line", hint="a line's number, or FILE:LINE")
    return filename or own, int(line)


def _same_file(given: str | None, filename: str) -> bool:
    if given is None:
        return True
    path = Path(filename)
    return Path(given).absolute() == path.absolute() or str(path).endswith(f"{os.sep}{Path(given)}")


def file_of(model: Any) -> str | None:
    """The file that a model's own code stands in, or None."""
    while isinstance(model, functools.partial):
        model = model.func
    function: Any = getattr(model, "forward", model)
    function = function if inspect.isroutine(function) else getattr(type(function), "__call__", None)  # noqa: B004
    plain: Any = getattr(function, "__func__", function)
    code = getattr(inspect.unwrap(plain), "__code__", None)
    return None if code is None else str(code.co_filename)
