"""What all errors share: the place in the user's source, and the text that is printed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Location:
    """A place in the user's source: file, line (1-based), columns and the line's text.

    Columns count characters from 0; ``end_column`` is the one behind the last. None where they are not known.
    ``construct`` says what the user wrote there that is staged (``if``, ``and``); nothing of what dy2st adds itself.
    """

    filename: str
    line: int
    column: int | None = None
    text: str | None = None
    end_column: int | None = None
    construct: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    def excerpt(self) -> list[str]:
        """The line, indented anew, and below it a mark at the column; nothing without a text."""
        if not self.text or not self.text.strip():
            return []
        shown = self.text.strip()
        start = (self.column or 0) - self.text.index(shown)
        if self.column is None or not 0 <= start < len(shown):
            return [f"    {shown}"]
        width = 1 if self.end_column is None else min(self.end_column - self.column, len(shown) - start)
        before = "".join("\t" if character == "\t" else " " for character in shown[:start])
        return [f"    {shown}", f"    {before}{'^' * max(width, 1)}"]


class Dy2stError(Exception):
    """Base of every error that dy2st raises on purpose.

    ``what`` says what was met, ``hint`` what to write instead, ``location`` where in the user's source.
    Catch it to catch them all; each kind has a class and a code of its own.

    Before:
        import dy2st
        program = dy2st.export("no model", ())

    After:
        import dy2st
        try:
            program = dy2st.export("no model", ())
        except dy2st.errors.Dy2stError as error:
            message = f"{error.code} {error.what}"
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
        if self.location:
            lines += self.location.excerpt()
        if self.hint:
            lines.append(f"  instead: {self.hint}")
        return "\n".join(lines)
