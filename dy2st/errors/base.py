"""What all errors share: the place in the user's source, and the text that is printed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A place in the user's source: file, line (1-based), column (0-based, None if unknown) and the line's text."""

    filename: str
    line: int
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


class Dy2stError(Exception):
    """Base of every error that dy2st raises on purpose.

    ``what`` says what was met, ``hint`` what to write instead, ``location`` where in the user's source.
    Catch it to catch them all; each kind has a class and a code of its own.

    Before:
        import dy2st
        report = dy2st.check(model, inputs)

    After:
        import dy2st
        try:
            report = dy2st.check(model, inputs)
        except dy2st.errors.Dy2stError as error:
            print(error.code, error.what, error.location)
    """

    code = "D2S900"

    def __init__(self, what: str, *, hint: str = "", location: Location | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        lines = [f"{where}{self.code}: {self.what}"]
        if self.location and self.location.text:
            lines.append(f"    {self.location.text.strip()}")
        if self.hint:
            lines.append(f"  instead: {self.hint}")
        return "\n".join(lines)
