"""What the structure of a container is: its children, and how to build one like it from others."""

from __future__ import annotations

import abc
import collections
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import torch

from dy2st.values.closures import opened_function
from dy2st.values.plain_objects import Opened, is_plain, plain_objects
from dy2st.values.references import is_reference, opened_reference
from dy2st.values.undefined import UNSET


class Listed(abc.ABC):
    """An object that stands for a container of Python's, of class ``kind``, and keeps what is in it as a list."""

    kind: type

    @abc.abstractmethod
    def copy(self) -> Any:
        """Another one with the same elements."""

    def watch(self) -> Callable[[], None]:
        """What refuses to go on with the elements as they are now, where they have changed since."""
        return lambda: None

    @abc.abstractmethod
    def listed(self) -> list[Any]:
        """The elements in their order, among them perhaps rows of the graph."""


class Keys:
    """The keys of a dict, in order: two are equal if a dict takes them for the same and they are of the same types."""

    def __init__(self, order: tuple[Any, ...]) -> None:
        self.order = order

    def _places(self) -> dict[Any, tuple[int, type]]:
        return {key: (place, type(key)) for place, key in enumerate(self.order)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keys) and self._places() == other._places()

    def __hash__(self) -> int:
        return hash(self.order)


def open_alike(a: Any, b: Any) -> tuple[Opened, Opened] | None:
    """Two containers of the same structure; an object from before is taken apart beside one that was made on a path."""
    first, second = open_container(a), open_container(b)
    if (first is None) is not (second is None) and type(a) is type(b) and is_plain(a):
        first, second = plain_objects().opened(a), plain_objects().opened(b)
    return None if first is None or second is None or first[2] != second[2] else (first, second)


def changeable(value: Any) -> bool:
    """Whether something is a container that can be changed."""
    if isinstance(value, type) or is_reference(value):
        return False
    return isinstance(value, (list, dict)) or dataclasses.is_dataclass(value) or is_plain(value)


def open_container(value: Any) -> Opened | None:
    """A container's children, how to build one from others, and what must be equal for two to be joined."""
    kind = type(value)
    if kind is list:
        return list(value), list, (kind, len(value))
    if kind is tuple or kind is torch.Size:
        return list(value), tuple, (tuple, len(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        # A constructor of the class's own may ask for tensors.
        return list(value), lambda children: tuple.__new__(kind, children), (kind, len(value))
    if isinstance(value, dict) and kind.__init__ is dict.__init__:
        keys = list(value)
        return (
            list(value.values()),
            lambda children: kind(zip(keys, children, strict=True)),
            (kind, Keys(tuple(keys))),
        )
    if is_reference(value):
        return opened_reference(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value)]
        if isinstance(value, dict):
            return _fields_and_items(value, names)

        def build(children: list[Any]) -> Any:
            made = object.__new__(kind)
            for name, child in zip(names, children, strict=True):
                object.__setattr__(made, name, child)
            return made

        return [getattr(value, n, UNSET) for n in names], build, (kind, tuple(names))
    if kind is types.FunctionType:
        return opened_function(value)
    return plain_objects().opened(value) if plain_objects().knows(value) else None


def is_record(value: Any) -> bool:
    """Whether a value is a dataclass that is a dict, too, and may hold its fields as items."""
    return isinstance(value, dict) and dataclasses.is_dataclass(value)


def record_like(value: dict[Any, Any], attributes: dict[str, Any], items: dict[Any, Any]) -> Any:
    """A record of the same class, which knows nothing of its constructor."""
    base: Any = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict
    made = base.__new__(type(value))
    for name, part in attributes.items():
        object.__setattr__(made, name, part)
    for key, part in items.items():
        base.__setitem__(made, key, part)
    return made


def items_of(record: dict[Any, Any]) -> dict[Any, Any]:
    """The items of a record, whatever its own methods say."""
    base: Any = collections.OrderedDict if isinstance(record, collections.OrderedDict) else dict
    return dict(base.items(record))


def _fields_and_items(value: dict[Any, Any], names: list[str]) -> Opened:
    items = items_of(value)

    def build(children: list[Any]) -> Any:
        attributes = dict(zip(names, children, strict=False))
        return record_like(value, attributes, dict(zip(items, children[len(names) :], strict=True)))

    children = [getattr(value, name, UNSET) for name in names] + list(items.values())
    return children, build, (type(value), (*names, *(f"[{key!r}]" for key in items)))
