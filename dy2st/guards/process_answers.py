"""What the process has said of itself while a program was captured, asked again before each run.

Torch's modes are looked at in any case (:mod:`dy2st.guards.ambient`).
"""

from __future__ import annotations

import contextlib
import decimal
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from dy2st.calls.asked_again import Answer
from dy2st.errors import Dy2stError
from dy2st.guards.constants import constant_key, is_constant
from dy2st.guards.names import Names
from dy2st.guards.source import Same
from dy2st.guards.sources import World, observe
from dy2st.staging.memory.heap import CACHED

# Where a program's graph module keeps them until somebody guards them.
ANSWERS = "dy2st.answers"
# Where it keeps the objects that the code has asked for their identity.
IDENTIFIED = "dy2st.identified"


class Asked:
    """A question, and the key of the answer. Arguments that are no constants are not kept alive."""

    def __init__(self, answer: Answer) -> None:
        self.function, self.said = answer.function, answer.said
        self._args = [_held(each) for each in answer.args]
        self._kwargs = {name: _held(each) for name, each in answer.kwargs.items()}
        self.key = _key(answer.said)
        self._names: Names | None = None
        self._content: Any = None

    def _ask(self) -> Any:
        args = [each() for each in self._args]
        return self.function(*args, **{name: each() for name, each in self._kwargs.items()})

    def look_into(self, names: Names) -> None:
        """What code with these names can read of the answer is to stay what it is."""
        with contextlib.suppress(Exception):
            said = self._ask()
            if not _is_plain(said) and not isinstance(said, torch.Tensor):
                self._names = names
                self._content = observe([("the answer", said)], names, {}, learn=False).key

    def is_the_same(self) -> bool:
        """Whether the answer is what it was; a function that raises now has none."""
        try:
            said = self._ask()
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
        if (all(map(is_constant, given)) or isinstance(each.function, CACHED)) and Asked(each).is_the_same():
            key = each.function, tuple(map(_key, given)), tuple(each.kwargs)
            found.setdefault(key, Asked(each))
    return list(found.values())


def asked_of(answers: Iterable[Answer]) -> Iterator[Any]:
    """The objects that functions with a cache were given: such a function tells them apart by their identity."""
    for each in answers:
        if isinstance(each.function, CACHED):
            yield from (arg for arg in (*each.args, *each.kwargs.values()) if not is_constant(arg))


def implicit_questions(world: World) -> list[Asked]:
    """What operators ask without a call: the context that decimal numbers are rounded in, if the world has such."""
    for each in world.sources:
        if isinstance(each.value, decimal.Decimal) or each.value is decimal.Decimal or each.value is decimal:
            return [Asked(Answer(_rounding, (), {}, _rounding()))]
    return []


def _rounding() -> tuple[Any, ...]:
    now = decimal.getcontext()
    trapped = tuple(trap.__name__ for trap, on in now.traps.items() if on)
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, trapped


def _held(value: Any) -> Callable[[], Any]:
    """A constant, or something that lives elsewhere: what is gone is None."""
    with contextlib.suppress(TypeError):
        if not is_constant(value):
            return weakref.ref(value)
    return functools.partial(_itself, value)


def _itself(value: Any) -> Any:
    return value


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
