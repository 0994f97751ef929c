"""Stores and subscripts under a capture: recorded before they are made, with staged indices where Python wants ints."""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dy2st.errors import StagedIndexError
from dy2st.source.user_frames import named, users_frame
from dy2st.staging.branches.case_distribution import choose
from dy2st.staging.cases import has_maybe_keys, narrowed
from dy2st.staging.containers import lists
from dy2st.staging.containers.attributes import STORING, delete, store
from dy2st.staging.containers.data_keyed import is_data_key, key_by_data
from dy2st.staging.containers.dicts import MaybeKeys
from dy2st.staging.containers.selection import ModuleSequence, Subscripted, Table, chosen
from dy2st.staging.session import MODE, Session
from dy2st.staging.untracked_mutation import refuse_item
from dy2st.staging.users_code import member, of_the_user, special
from dy2st.values.describing import article
from dy2st.values.journal import CONTAINERS, Slot
from dy2st.values.number import SYMBOLS, Number
from dy2st.values.tagged_union import TaggedUnion
from dy2st.values.undefined import Undefined

SEQUENCES = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ParameterList, torch.nn.ModuleDict)


class Stored:
    """Stands for an object in a store; its attributes are the object's own."""

    __slots__ = ("_capture", "_owner")

    def __init__(self, capture: Session, owner: Any) -> None:
        object.__setattr__(self, "_capture", capture)
        object.__setattr__(self, "_owner", owner)


class StoreTarget(Stored):
    """Records, then stores."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Read by an augmented assignment, which changes a container in place."""
        value = getattr(object.__getattribute__(self, "_owner"), name)
        object.__getattribute__(self, "_capture").touch_content(value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        owner = object.__getattribute__(self, "_owner")
        capture = object.__getattribute__(self, "_capture")
        if name == "__class__":
            capture.refuse_change(owner, "__class__")
        if name == "requires_grad" and isinstance(owner, torch.Tensor):
            capture.call(owner.requires_grad_)(value)
            return
        setter, own = member(owner, "__setattr__"), member(owner, name)
        if of_the_user(setter) or of_the_user(getattr(type(own), "__set__", None)) or isinstance(own, property):
            setattr(owner, name, value)  # the user's code, whose own stores are recorded
        else:
            if not any(setter is each for each in STORING):
                capture.touch_content(owner)  # a mapping whose keys are attributes
            store(capture, owner, name, value, setattr)

    def __delattr__(self, name: str) -> None:
        owner = object.__getattribute__(self, "_owner")
        if of_the_user(member(owner, "__delattr__")) or isinstance(member(owner, name), property):
            delattr(owner, name)
        else:
            delete(object.__getattribute__(self, "_capture"), owner, name, delattr)

    def __getitem__(self, key: Any) -> Any:
        """Read by an augmented assignment, which changes a container in place."""
        if isinstance(key, TaggedUnion):
            return chosen(self._capture, key, self.__getitem__)
        value = load_target(self._owner)[key]
        self._capture.touch_content(value)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, TaggedUnion):
            chosen(self._capture, key, lambda case: self.__setitem__(case, value))
            return
        owner = self._owner
        if isinstance(owner, torch.Tensor):
            owner[key] = value
            return
        if isinstance(owner, (list, collections.deque)):
            self._capture.touch(Slot.of("content", owner))
            lists.store(self._capture, owner, key, value)
            return
        self._method("__setitem__", operator.setitem, key)(key, value)

    def __delitem__(self, key: Any) -> None:
        if isinstance(key, TaggedUnion):
            chosen(self._capture, key, self.__delitem__)
            return
        owner = self._owner
        if isinstance(owner, (list, collections.deque)):
            self._capture.touch(Slot.of("content", owner))
            lists.delete(self._capture, owner, key)
            return
        self._method("__delitem__", operator.delitem, key)(key)

    def _method(self, name: str, native: Callable[..., None], key: Any) -> Callable[..., None]:
        """What stores or deletes an item: the user's method, converted, or Python's, recorded."""
        owner = self._owner
        if isinstance(owner, CONTAINERS):
            key_by_data(self._capture, owner, key)
            refuse_staged_key(owner, key)
            self._capture.touch(Slot.of("content", owner))
        else:
            method = special(owner, name)
            if method is not None:
                return method
            for each in _memory(owner):
                self._capture.aliases.check_change(each)
            refuse_item(self._capture, owner)
        return functools.partial(native, owner)


def _memory(owner: Any) -> Iterator[Any]:
    """An object, and the arrays of numpy's that it is a view of."""
    while owner is not None:
        yield owner
        owner = owner.base if type(owner).__module__ == "numpy" else None


def refuse_staged_key(owner: Any, key: Any) -> None:
    """A Python container can't be stored to at a data-dependent place."""
    parts = (key.start, key.stop, key.step) if isinstance(key, slice) else (key,)
    if any(isinstance(p, (Number, torch.Tensor, torch.SymInt)) for p in parts):
        raise StagedIndexError(
            f"{named(owner, article(type(owner).__name__))} is changed at a key that is known only when the graph runs",
            hint="use a tensor in place of the container",
        )


class EachTarget(Stored):
    """Of an object of one of several kinds, each case is stored to, on its path."""

    __slots__ = ()

    def _each(self, store: Callable[[Any], None]) -> None:
        capture = object.__getattribute__(self, "_capture")
        self._read(lambda case: store(store_target(capture, case)))

    def _read(self, load: Callable[[Any], Any]) -> Any:
        """What an augmented assignment starts from."""
        capture = object.__getattribute__(self, "_capture")
        return choose(capture, object.__getattribute__(self, "_owner"), load, users_frame())

    def __getattr__(self, name: str) -> Any:
        return self._read(lambda case: getattr(case, name))

    def __getitem__(self, key: Any) -> Any:
        return self._read(lambda case: load_target(case)[key])

    def __setattr__(self, name: str, value: Any) -> None:
        self._each(lambda target: setattr(target, name, value))

    def __delattr__(self, name: str) -> None:
        self._each(lambda target: delattr(target, name))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._each(lambda target: operator.setitem(target, key, value))

    def __delitem__(self, key: Any) -> None:
        self._each(lambda target: operator.delitem(target, key))


class EachItem(Subscripted):
    """Stands for an object of one of several kinds in a subscript load."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return choose(self.capture, self.owner, lambda case: load_target(case)[key], users_frame())


def store_target(capture: Session, owner: Any) -> Any:
    """What stands for ``owner`` in a store."""
    if isinstance(owner, Undefined):
        owner.refuse()
    owner = narrowed(capture, owner)
    return (EachTarget if isinstance(owner, TaggedUnion) else StoreTarget)(capture, owner)


class StagedSequence(Subscripted):
    """A list or tuple subscripted by something that may be known only when the graph runs."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return lists.load(self.capture, self.owner, key)


class StagedText(Subscripted):
    """A text subscripted by something that may be known only when the graph runs: one of its characters."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (Number, *SYMBOLS)):
            return lists.load(self.capture, tuple(self.owner), key)
        if isinstance(key, TaggedUnion):
            return chosen(self.capture, key, self.__getitem__)
        return self.owner[key]


class DictTable(Table):
    """A dict where it is subscripted: a defaultdict or Counter has a value for any key, and lists may be changed."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(self.owner, (collections.defaultdict, collections.Counter)):
            key_by_data(self.capture, self.owner, key)
        found = super().__getitem__(key)
        if type(found) is list and is_data_key(key):
            revise = functools.partial(key_by_data, self.capture, self.owner, key, lists=True)
            self.capture.aliases.otherwise[id(found)] = found, revise
        return found


def load_target(owner: Any) -> Any:
    """What stands for ``owner`` in a subscript load."""
    capture = MODE.capture
    if isinstance(owner, Undefined):
        owner.refuse()
    if capture is None:
        return owner
    if type(owner) in (list, tuple, collections.deque):
        return StagedSequence(capture, owner)
    if type(owner) in (str, bytes):
        return StagedText(capture, owner)
    if isinstance(owner, TaggedUnion):
        return EachItem(capture, owner)
    if isinstance(owner, dict):
        return (MaybeKeys if has_maybe_keys(owner) else DictTable)(capture, owner)
    return ModuleSequence(capture, owner) if isinstance(owner, SEQUENCES) else owner
