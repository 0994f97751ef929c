"""Which statements are muted while functions are rewritten: those that were refused in earlier runs."""

from __future__ import annotations

import types
from dataclasses import dataclass, field

from dy2st.operators.export_session import current
from dy2st.source.compiling import nested
from dy2st.source.registry import IdentityMap, Rewritten
from dy2st.transforms.muting import Mute


@dataclass
class Mutes:
    """The muted lines of each file, and how much of the statement there is muted."""

    lines: dict[str, dict[int, Mute]] = field(default_factory=dict)

    def more(self, filename: str, line: int) -> bool:
        """Mute the statement at a line, or more of it; False if all of it is muted already."""
        levels = self.lines.setdefault(filename, {})
        known = levels.get(line)
        levels[line] = Mute.VALUES if known is None else Mute.ALL
        return known is not Mute.ALL

    def of(self, code: types.CodeType) -> dict[int, Mute]:
        """The muted lines of a function."""
        levels = self.lines.get(code.co_filename)
        if not levels:
            return {}
        own = [line for inner in nested(code) for *_, line in inner.co_lines() if line is not None]
        return {line: level for line, level in levels.items() if min(own) <= line <= max(own)}


class Muting:
    """What is muted in an export, and the functions that were rewritten so; an export that mutes makes no program."""

    def __init__(self, mutes: Mutes | None = None) -> None:
        self.mutes = mutes
        self.made: IdentityMap[types.CodeType, Rewritten] = IdentityMap()

    def lines(self, code: types.CodeType) -> dict[int, Mute]:
        """The muted lines of a function."""
        return {} if self.mutes is None else self.mutes.of(code)


def muting() -> Muting:
    """What the running export mutes."""
    return current().part(Muting)
