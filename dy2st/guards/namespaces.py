"""What torch's own namespaces hold: whoever puts another function there changes what torch's other functions do.

``Tensor`` and ``torch.nn.functional`` call each other by name, and Python's operators call the methods of ``Tensor``.
So what they hold counts as a whole, for each program. One number stands for it; dicts have versions, in C.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch._C._dynamo.guards import RootGuardManager
from torch._dynamo.guards import GuardManagerType
from torch.nn import functional

_ABSENT = object()
_KIND = GuardManagerType.GUARD_MANAGER


def _dict_behind(cls: type) -> dict[str, Any]:
    """The dict of a class, of which ``vars`` gives a view."""
    (found,) = (each for each in gc.get_referents(vars(cls)) if isinstance(each, dict))
    return found


class Namespaces:
    """Some namespaces, and what they have held so far: lists of the values of the names that they had at first."""

    def __init__(self, held: Mapping[str, dict[str, Any]], beside: Mapping[str, Any]) -> None:
        """``held`` are the namespaces by name; ``beside`` holds names that may come to each."""
        self._names = {name: [*dict.fromkeys((*each, *beside))] for name, each in held.items()}
        self._held = held
        self._seen: list[list[Any]] = []

    def number(self) -> int:
        """The same number where they hold the same functions."""
        now = [each.get(name, _ABSENT) for key, each in self._held.items() for name in self._names[key]]
        for i, seen in enumerate(self._seen):
            if all(map(operator.is_, seen, now)):
                return i
        self._seen.append(now)
        return len(self._seen) - 1

    def unchanged(self, space: dict[str, Any]) -> str:
        """An expression that says at once whether nobody has set anything; its names go to ``space``."""
        root = RootGuardManager()
        for i, (name, each) in enumerate(self._held.items()):
            root.tuple_getitem_manager(i, name, each, _KIND).add_dict_version_guard(each, [name], None)
        space.update(namespaces=tuple(self._held.values()), same_namespaces=root.check)
        return "same_namespaces(namespaces)"


TORCHS = Namespaces(
    {"Tensor": _dict_behind(torch.Tensor), "functional": vars(functional)},
    {name: None for name in vars(torch._C.TensorBase) if name.startswith("__")},
)
