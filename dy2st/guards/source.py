"""One value of the world that code can read, and how it is found."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Access = tuple[Any, ...]


class Same:
    """An object as a key: equal to itself alone. It is not kept alive where it can be referred to weakly."""

    __slots__ = ("identity", "reference")

    def __init__(self, thing: Any) -> None:
        self.identity = id(thing)
        try:
            self.reference: Callable[[], Any] = weakref.ref(thing)
        except TypeError:
            self.reference = functools.partial(_identity, thing)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same) or self.identity != other.identity:
            return False
        return self.reference() is not None and self.reference() is other.reference()

    def __hash__(self) -> int:
        return self.identity

    def __repr__(self) -> str:
        thing = self.reference()
        return getattr(thing, "__qualname__", None) or type(thing).__name__


def _identity(thing: Any) -> Any:
    return thing


@dataclass(slots=True)
class Source:
    """One value: ``key`` is what is fixed of it, ``access`` how it is reached from its parent, ``name`` its path.

    What is ``opaque`` counts as itself, whatever it leads to.
    """

    access: Access
    value: Any
    name: str
    opaque: bool = False
    key: Any = None
    parts: list[Source] = field(default_factory=list)

    def is_known(self) -> bool:
        """Whether it is what another source has found before."""
        return isinstance(self.key, tuple) and self.key[:1] == ("same as",)
