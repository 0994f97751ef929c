"""What the process has said of itself while a program was captured, asked again before each run.

Torch's modes are looked at in any case (:mod:`dy2st.guards.ambient`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dy2st.calls.asked_again import Answer
from dy2st.guards.constants import constant_key, is_constant
from dy2st.guards.source import Same

# Where a program's graph module keeps them until somebody guards them.
ANSWERS = "dy2st.answers"


class Asked:
    """A question whose arguments are constants, and the key of the answer."""

    def __init__(self, answer: Answer) -> None:
        self.function, self.args, self.kwargs, _ = answer
        self.key = _key(answer.said)

    def is_the_same(self) -> bool:
        """Whether the answer is what it was; a function that raises now has none."""
        try:
            said = self.function(*self.args, **self.kwargs)
        except Exception:  # noqa: BLE001 - the code that asks will meet it
            return False
        return bool(_key(said) == self.key)


def kept(answers: Iterable[Answer]) -> list[Asked]:
    """Those that can be asked again, after the capture. What a capture changes is told otherwise after it."""
    found: dict[Any, Asked] = {}
    for each in answers:
        given = (*each.args, *each.kwargs.values())
        if all(map(is_constant, given)) and Asked(each).is_the_same():
            key = each.function, tuple(map(constant_key, given)), tuple(each.kwargs)
            found.setdefault(key, Asked(each))
    return list(found.values())


def all_the_same(asked: Sequence[Asked]) -> bool:
    """Whether all is answered as it was."""
    return all(each.is_the_same() for each in asked)


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    return constant_key(value) if is_constant(value) else Same(value)
