"""Maps keyed by identity that keep nothing alive.

Code objects compare by value, so that two functions with the same text share an entry in a ``dict``; which function a
code object belongs to is a question of identity.
"""

from __future__ import annotations

import types
import weakref
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class IdentityMap(Generic[Key, Value]):
    """A weak mapping by identity."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Key], Value]] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        entries, number = self._entries, id(key)
        self._entries[number] = (weakref.ref(key, lambda _: entries.pop(number, None)), value)

    def get(self, key: Key) -> Value | None:
        """The value of this very object, or None."""
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True)
class Rewritten:
    """What became of one code object: None if nothing had to be rewritten."""

    code: types.CodeType | None
    operators: str
