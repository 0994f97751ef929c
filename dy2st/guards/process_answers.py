"""What the process has said of itself while a program was captured, asked again before each run.

Torch's modes are looked at in any case (:mod:`dy2st.guards.ambient`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from dy2st.calls.asked_again import Answer
from dy2st.errors import Dy2stError
from dy2st.guards.constants import constant_key, is_constant
from dy2st.guards.names import Names
from dy2st.guards.source import Same
from dy2st.guards.sources import observe

# Where a program's graph module keeps them until somebody guards them.
ANSWERS = "dy2st.answers"


class Asked:
    """A question whose arguments are constants, and the key of the answer."""

    def __init__(self, answer: Answer) -> None:
        self.function, self.args, self.kwargs, self.said = answer
        self.key = _key(answer.said)
        self._names: Names | None = None
        self._content: Any = None

    def look_into(self, names: Names) -> None:
        """What code with these names can read of the answer is to stay what it is."""
        with contextlib.suppress(Exception):
            said = self.function(*self.args, **self.kwargs)
            if not _is_plain(said) and not isinstance(said, torch.Tensor):
                self._names = names
                self._content = observe([("the answer", said)], names, {}, learn=False).key

    def is_the_same(self) -> bool:
        """Whether the answer is what it was; a function that raises now has none."""
        try:
            said = self.function(*self.args, **self.kwargs)
        except Exception:  # noqa: BLE001 - the code that asks will meet it
            return False
        if _key(said) != self.key:
            return False
        if self._names is None:
            return True
        with contextlib.suppress(Dy2stError):
            return bool(observe([("the answer", said)], self._names, {}, learn=False).key == self._content)
        return False


def kept(answers: Iterable[Answer]) -> list[Asked]:
    """Those that can be asked again, after the capture. What a capture changes is told otherwise after it."""
    found: dict[Any, Asked] = {}
    for each in answers:
        given = (*each.args, *each.kwargs.values())
        if all(map(is_constant, given)) and Asked(each).is_the_same():
            key = each.function, tuple(map(constant_key, given)), tuple(each.kwargs)
            found.setdefault(key, Asked(each))
    return list(found.values())


def looked_into(asked: Sequence[Asked], names: Names) -> Sequence[Asked]:
    """These, with what code with these names can read of the answers."""
    for each in asked:
        each.look_into(names)
    return asked


def all_the_same(asked: Sequence[Asked]) -> bool:
    """Whether all is answered as it was."""
    return all(each.is_the_same() for each in asked)


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else is_constant(value)


def _key(value: Any) -> Any:
    if isinstance(value, tuple) or (type(value) is list and all(isinstance(each, type) for each in value)):
        return tuple(map(_key, value))
    if type(value) is dict:  # one that is made for each who asks
        return tuple((_key(key), _key(each)) for key, each in value.items())
    return constant_key(value) if is_constant(value) else Same(value)
