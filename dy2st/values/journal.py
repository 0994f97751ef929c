"""What a subgraph's code stored outside its own variables: attributes, containers, globals, cells, context variables.

Each store is recorded before it is made, with what was there before. At the end of a subgraph the journal *is* its
effect: the new values are read off, and the old ones put back, so that the next arm starts from the same state.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dy2st.errors import GrownListError
from dy2st.values import context_variables
from dy2st.values.undefined import UNSET

CONTAINERS = (list, dict, set, collections.deque, bytearray)


@dataclass(frozen=True)
class Slot:
    """A place that holds a value: ``kind`` is attribute, content, global, cell or context."""

    kind: str
    owner: Any = field(compare=False)
    name: str
    identity: int

    @classmethod
    def of(cls, kind: str, owner: Any, name: str = "") -> Slot:
        """The slot of an owner; equal for the same owner object."""
        return cls(kind, owner, name, id(owner))

    def get(self) -> Any:
        """The present value; a copy for the content of a container."""
        if self.kind == "attribute":
            return _raw_attribute(self.owner, self.name)
        if self.kind == "content":
            return _content(self.owner)
        if self.kind == "global":
            return self.owner.get(self.name, UNSET)
        if self.kind == "context":
            return context_variables.value_of(self.owner)
        try:
            return self.owner.cell_contents
        except ValueError:
            return UNSET

    def set(self, value: Any) -> None:
        """Put a value there, or nothing (UNSET)."""
        if self.kind == "attribute":
            if value is UNSET:
                if _raw_attribute(self.owner, self.name) is not UNSET:
                    delattr(self.owner, self.name)
            else:
                _set_attribute(self.owner, self.name, value)
        elif self.kind == "content":
            _set_content(self.owner, value)
        elif self.kind == "global":
            if value is UNSET:
                self.owner.pop(self.name, None)
            else:
                self.owner[self.name] = value
        elif self.kind == "context":
            context_variables.store(self.owner, value)
        elif value is UNSET:
            del self.owner.cell_contents
        else:
            self.owner.cell_contents = value

    def __str__(self) -> str:
        owner = type(self.owner).__name__
        if self.kind == "attribute":
            return f"{owner}.{self.name}"
        if self.kind == "content":
            return f"the content of a {owner}"
        return self.name or "an enclosing function's variable"


def _raw_attribute(owner: Any, name: str) -> Any:
    """The attribute in the object itself (not a class attribute or property), or UNSET."""
    namespace = getattr(owner, "__dict__", None)
    if namespace is not None:
        if name in namespace:
            return namespace[name]
        members = _registry(namespace, name)
        if members is not None:
            return members[name]
        return UNSET if not _is_slot(owner, name) else getattr(owner, name, UNSET)
    return getattr(owner, name, UNSET)


def _registry(namespace: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Where a module of torch's keeps a part of that name; None without such a part."""
    registries = (namespace.get(group) for group in ("_parameters", "_buffers", "_modules"))
    return next((members for members in registries if isinstance(members, dict) and name in members), None)


def _is_slot(owner: Any, name: str) -> bool:
    return any(name in getattr(c, "__slots__", ()) for c in type(owner).__mro__)


def _set_attribute(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, type):
        type.__setattr__(owner, name, value)  # its namespace can only be read
        return
    namespace = getattr(owner, "__dict__", None)
    if namespace is not None and not _is_slot(owner, name):
        members = _registry(namespace, name)
        (namespace if members is None else members)[name] = value
        return
    try:
        object.__setattr__(owner, name, value)
    except TypeError:  # a type of C's with an assignment of its own
        setattr(owner, name, value)


class Store(NamedTuple):
    """A slot, what was there before and what is there now; whether that is computed of the values of arguments."""

    slot: Slot
    old: Any
    new: Any
    of_arguments: bool = False


class DefaultDict(dict[Any, Any]):
    """The content of a dict that has a value for missing keys, such as a Counter: none of its keys may be uncertain."""


def _dict_kind(owner: dict[Any, Any]) -> Any:
    """The class whose methods have the content as it is: what a subclass makes of a store or a load is no concern here.

    An OrderedDict keeps its order in a place of its own.
    """
    return collections.OrderedDict if isinstance(owner, collections.OrderedDict) else dict


def _content(owner: Any) -> Any:
    if isinstance(owner, dict):
        tracked = not hasattr(type(owner), "__missing__") or hasattr(type(owner), "tracks_missing")
        return (dict if tracked else DefaultDict)(_dict_kind(owner).items(owner))
    if isinstance(owner, set):
        return frozenset(owner)
    return list(owner)


def _set_content(owner: Any, value: Any) -> None:
    if isinstance(owner, bytearray) and not all(isinstance(each, int) for each in value):
        raise GrownListError("a bytearray is changed under a tensor condition", hint="use a list of ints")
    if isinstance(owner, list):
        list.__setitem__(owner, slice(None), value)
    elif isinstance(owner, dict):
        kind = _dict_kind(owner)
        kind.clear(owner)
        for key, each in value.items():
            kind.__setitem__(owner, key, each)
    else:
        owner.clear()
        (owner.update if isinstance(owner, set) else owner.extend)(value)


class Journal:
    """The stores of one subgraph, first touch of each slot with its old value."""

    def __init__(self) -> None:
        self.old: dict[Slot, Any] = {}

    def touch(self, slot: Slot) -> None:
        """A store to ``slot`` follows."""
        if slot not in self.old:
            self.old[slot] = slot.get()

    def take(self) -> dict[Slot, Any]:
        """The new values; the old ones are put back."""
        new = {slot: slot.get() for slot in self.old}
        for slot, value in reversed(list(self.old.items())):
            slot.set(value)
        return new

    def put(self, new: dict[Slot, Any]) -> None:
        """Make the changes again that ``take`` undid."""
        for slot, value in new.items():
            slot.set(value)
