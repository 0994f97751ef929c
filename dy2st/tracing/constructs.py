"""What the user wrote that a node stands for, said in its traceback: all that torch carries on to the file.

A branch or loop of the graph is a construct of the user's, or one that dy2st adds: what follows a jump, what is done
with each case of a value. Only of the former a check demands that inputs take each of its ways.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import fx

    from dy2st.errors import Location

# What stands in a line of a traceback in place of the function's name: "if at column 8: then, else".
_MARK = re.compile(r", (if|and|or|loop|comprehension|filter) at column (-?\d+)(?:: ([a-z ,]*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Construct:
    """One of the user's constructs: its kind, its column (from 0; None if it isn't known), and the ways it can go."""

    kind: str
    column: int | None
    ways: tuple[str, ...] = ()


def place_text(location: Location, ways: Sequence[str] = ()) -> str:
    """A place as a line of a traceback, with what is staged there."""
    mark = ""
    if location.construct:
        column = -1 if location.column is None else location.column
        told = f": {', '.join(ways)}" if ways else ""
        mark = f", {location.construct} at column {column}{told}"
    return f'File "{location.filename}", line {location.line}{mark}\n    {(location.text or "").strip()}'


def construct_in(stack: str) -> tuple[Construct | None, str]:
    """What a traceback says of a construct, and the traceback without it."""
    found = _MARK.search(stack)
    if found is None:
        return None, stack
    column = None if found[2] == "-1" else int(found[2])
    ways = tuple(found[3].split(", ")) if found[3] else ()
    return Construct(found[1], column, ways), stack[: found.start()] + stack[found.end() :]


def mark_node(node: fx.Node, location: Location, ways: Sequence[str]) -> None:
    """Say of a node which construct it stands for, and which ways that can go."""
    node.meta["stack_trace"] = place_text(location, ways)
