"""Plain objects that nobody but the code under trace has seen: values that may be taken apart, as a dataclass is.

``best = Result(x, loss)`` in an arm or a loop makes an object that is one of two, depending on the path: what stands
for both is an object of the same class whose attributes are joined one by one. An object from before keeps its identity
wherever it is one of several (``TaggedUnion``), unless the other one was made on a path.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import nn

from dy2st.operators.export_session import current

HEAP_TYPE = 1 << 9
# The attribute of a class of references, which are none: see ``references``.
TABLE = "_dy2st_table"
Opened = tuple[list[Any], Callable[[list[Any]], Any], Any]


@functools.cache
def is_plain_class(kind: Any) -> bool:
    """Whether objects of a class are their attributes and nothing else: a class written in Python, by a user."""
    if kind is types.SimpleNamespace:
        return True
    if TABLE in vars(kind):
        return False
    package = kind.__module__.partition(".")[0]
    if package in sys.stdlib_module_names or package in ("torch", "dy2st") or issubclass(kind, nn.Module):
        return False
    written = all(base.__flags__ & HEAP_TYPE for base in kind.__mro__[:-1])
    return written and kind.__new__ is object.__new__ and not hasattr(kind, "__del__")


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    return tuple(name for base in kind.__mro__ for name, member in vars(base).items() if _is_slot(member))


def _is_slot(member: Any) -> bool:
    return isinstance(member, types.MemberDescriptorType) and member.__name__ not in ("__dict__", "__weakref__")


def dict_of(value: Any) -> Any:
    """The ``__dict__`` of an object, or None; code of the user's that answers for attributes is not asked."""
    kind: Any = type(value)
    look = kind.__getattribute__
    with contextlib.suppress(AttributeError):
        return (object.__getattribute__ if isinstance(look, types.FunctionType) else look)(value, "__dict__")
    return None


def _in_slots(value: Any) -> Iterator[tuple[str, Any]]:
    """The slots of an object that hold something."""
    kind: Any = type(value)
    for name in _slots(kind):
        with contextlib.suppress(AttributeError):
            yield name, object.__getattribute__(value, name)


def namespace_of(value: Any) -> dict[str, Any]:
    """A copy of what ``vars()`` gives, empty where there is no such; an object may answer with anything."""
    held = dict_of(value)
    return dict(held) if isinstance(held, (dict, types.MappingProxyType)) else {}


def attributes_of(value: Any) -> dict[str, Any]:
    """What an object holds, by attribute."""
    return namespace_of(value) | dict(_in_slots(value))


def empty_slots(value: Any) -> list[str]:
    """The slots of an object that hold nothing."""
    kind: Any = type(value)
    filled = dict(_in_slots(value))
    return [name for name in _slots(kind) if name not in filled]


def is_plain(value: Any) -> bool:
    """Whether a value is an object of such a class."""
    kind: Any = type(value)
    return not isinstance(value, type) and is_plain_class(kind)


class PlainObjects:
    """Which of them may be taken apart in an export."""

    def __init__(self) -> None:
        # Made in the arms or iterations that are being joined, by identity.
        self.made: frozenset[int] = frozenset()
        # Built by a join.
        self.built: dict[int, Any] = {}

    @contextlib.contextmanager
    def made_here(self, identities: Iterable[int]) -> Iterator[None]:
        """While the ends of the arms in which these were made are joined."""
        before, self.made = self.made, frozenset(identities)
        try:
            yield
        finally:
            self.made = before

    def knows(self, value: Any) -> bool:
        """Whether an object may be taken apart."""
        return id(value) in self.built or (id(value) in self.made and is_plain(value))

    def opened(self, value: Any) -> Opened:
        """An object's attributes, how to build one like it, and what must be equal for two to be joined."""
        kind, attributes = type(value), attributes_of(value)
        names = tuple(sorted(attributes))

        def build(children: list[Any]) -> Any:
            made = object.__new__(kind) if kind is not types.SimpleNamespace else types.SimpleNamespace()
            for name, child in zip(names, children, strict=True):
                object.__setattr__(made, name, child)
            self.built[id(made)] = made
            return made

        return [attributes[name] for name in names], build, (kind, names)


def plain_objects() -> PlainObjects:
    """Those of the running export."""
    return current().part(PlainObjects)
