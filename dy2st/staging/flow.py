"""How control leaves a subgraph: it falls through, or a jump takes it to a loop or function around.

``flags`` says which jumps are taken: a key is (kind, target), a value True or a 0-d bool tensor. ``RAISES`` is the key
of an exception: nothing goes on behind it. ``env`` holds the
variables at that point: the names of the user's frame, under ("return", function) a returned value, and under a member
of ``Own`` what else is carried. A str is a name of the user's, and no key of ours is one: whatever the user calls a
variable, it meets nothing of ours.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dy2st.operators.jumps import Jump
from dy2st.values.journal import Slot

Key = tuple[str, Any]
RAISES: Key = ("raise", None)
# Beside it where the exception is Python's own, not a ``raise`` statement's.
FAILS: Key = ("raise", "implicit")


class Own(enum.Enum):
    """What an environment carries beside the user's variables."""

    GOES_ON = "whether the loop goes on"
    RESULT = "value of the expression"
    ELEMENTS = "elements of the list"

    def __str__(self) -> str:
        return str(self.value)


def is_exception(key: Any) -> bool:
    """Whether a jump is that of an exception to the handlers of a ``try`` statement.

    Its key is that of a function's return: what it takes along is one value, of the variables in the statement.
    """
    return key[0] == "return" and getattr(key[1], "catches", False)


def returning(key: Any) -> Any:
    """The run of a function whose returned value has this key in an environment or in the state of a loop; or None."""
    if isinstance(key, tuple) and key[0] == "value":
        key = key[1]
    return key[1] if isinstance(key, tuple) and key[0] == "return" else None


def left_key(loop: Any, name: str) -> tuple[Any, ...]:
    """The key in an environment of what a variable is behind a ``break``, where no iteration begins with it."""
    return ("left", loop, name)


def left_names(env: dict[Any, Any], loop: Any) -> list[Any]:
    """Such keys of one loop in an environment."""
    return [key for key in env if isinstance(key, tuple) and key[:2] == ("left", loop)]


def complete_left(flows: Sequence[Flow]) -> None:
    """What one path has left apart at a ``break`` another one that breaks out of that loop has as its variable."""
    found = [key for flow in flows for key in flow.env if isinstance(key, tuple) and key[0] == "left"]
    for key in found:
        for flow in flows:
            if key not in flow.env and ("break", key[1]) in flow.flags and key[2] in flow.env:
                flow.env[key] = flow.env[key[2]]


# A key of an environment: a variable of the user's, or what is ours.
Name = str | Own


@dataclass
class Flow:
    """The end of a subgraph."""

    env: dict[Any, Any]
    flags: dict[Key, Any] = field(default_factory=dict)
    stores: dict[Slot, Any] = field(default_factory=dict)
    # What was made in the subgraph, by identity.
    born: frozenset[int] = frozenset()

    @property
    def falls(self) -> bool:
        """Whether control may reach the next statement."""
        return not any(value is True for value in self.flags.values())

    @property
    def jumps(self) -> frozenset[Any]:
        """The keys of the jumps that are made on this path for certain."""
        return frozenset(key for key, value in self.flags.items() if value is True)

    @property
    def raised(self) -> bool:
        """Whether this path ends in an exception."""
        return RAISES in self.flags

    @property
    def only_falls(self) -> bool:
        """Whether control always reaches the next statement."""
        return not self.flags

    def needed(self, fall_names: tuple[Name, ...]) -> set[Any]:
        """The variables that the code after this point reads, for each way that it may take."""
        names: set[Any] = set(fall_names) if self.falls else set()
        for kind, target in self.flags:
            if kind == "return":
                names.add(("return", target))
            elif kind != "raise":
                names.update(target.all_names)
                names.update(left_names(self.env, target) if kind == "break" else ())
        return names


class StagedJump(Jump):
    """A jump on a staged path; carries the flow that it makes."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow
