"""What a program prints, logs and warns of in each run, in the order of the code.

``dy2st::say(values, number)`` has the message of that number said, with the values of these tensors in it, and is 0
(int64). Like the zero of a guard that is added to the token of the program (:mod:`dy2st.tracing.guards`): so a message
is said where its path is taken, once for each iteration, and no runtime drops it.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.tracing.size_ops import LIBRARY

LIBRARY.define("say(Tensor[] values, int number) -> Tensor")


@dataclass
class Place:
    """Stands in a message for a tensor, or for what ``made`` gives of its numbers: a float, a size."""

    index: int
    made: Callable[[Any], Any] | None = None

    def of(self, values: Sequence[torch.Tensor]) -> Any:
        """What is said in its place."""
        value = values[self.index]
        return value.detach() if self.made is None else self.made(value.tolist())


class Put:
    """``function`` of arguments, as their leaves and form, some of which are known when the program runs."""

    def __init__(self, function: Callable[..., Any], leaves: Sequence[Any], spec: pytree.TreeSpec) -> None:
        self.function, self._leaves, self._spec = function, leaves, spec

    def of(self, values: Sequence[torch.Tensor]) -> Any:
        """What it gives of the values of a program's tensors."""
        leaves = [each.of(values) if isinstance(each, (Place, Put)) else each for each in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self.function(*args, **kwargs)


class Message:
    """What is said in each run; ``number`` is what the program knows it by."""

    def __init__(self, said: Put) -> None:
        self._said = said
        self.number = next(_NUMBERS)
        _MESSAGES[self.number] = self

    def say(self, values: Sequence[torch.Tensor]) -> None:
        """Have it said."""
        self._said.of(values)


_NUMBERS = itertools.count()
# The programs keep their messages.
_MESSAGES: weakref.WeakValueDictionary[int, Message] = weakref.WeakValueDictionary()


def _say(values: list[torch.Tensor], number: int) -> torch.Tensor:
    _MESSAGES[number].say(values)
    return torch.zeros((), dtype=torch.int64)


LIBRARY.impl("say", _say, "CompositeExplicitAutograd")
torch.library.register_fake("dy2st::say", lambda *_: torch.empty((), dtype=torch.int64), lib=LIBRARY)

say_op = torch.ops.dy2st.say.default
