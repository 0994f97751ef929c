"""Fast guards: torch's own guard managers (those of Dynamo, in C++), behind one name of ours.

A :class:`FastGuard` says in microseconds that nothing has changed of a world that ``dy2st.guards.sources`` has walked.
It may fail where the world is still the same (a list was replaced by one that is equal): then the walk decides. It must
not hold where the world is another one: each source of the walk is guarded by identity, value, type, length or keys.

Children of modules are *tag safe*, in Dynamo's words: where the versions of all dicts below a module are what they
were, and so are the metadata of its tensors, nothing below it is looked at again. Three hundred modules take 20 µs.

All of it is private to torch (2.13); ``tests/guards/test_torch_guards.py`` fails where that changes.
"""

from __future__ import annotations

import array
import builtins
import collections
import contextlib
import contextvars
import enum
import io
import operator
import sys
import threading
import types
import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._C._dynamo.guards import RootGuardManager
from torch._dynamo.guards import GuardManagerType

from dy2st.conversion import SHOWN
from dy2st.guards.constants import constant_key, is_constant
from dy2st.guards.functions import LOADED
from dy2st.guards.kinds import array_key
from dy2st.guards.names import is_users_class
from dy2st.guards.source import Source
from dy2st.values.plain_objects import dict_of, empty_slots

KIND = GuardManagerType.GUARD_MANAGER
# Keys of dicts that are equal to themselves alone, beside constants.
_KEYS = (type, types.FunctionType, types.BuiltinFunctionType, torch.nn.Module)
# torch asks for words to show on demand; nobody demands them of us.
WORDS: Any = ["guard"]


def _member_key(member: Any) -> Any:
    """What is fixed of a member of a set."""
    return constant_key(member) if is_constant(member) else id(member)


def _may_get_attributes(value: Any) -> bool:
    """Whether an object, of a class that is written in C, has attributes of its own: a ``SimpleNamespace``."""
    return type(dict_of(value)) is dict and not isinstance(
        value, (types.FunctionType, types.ModuleType, torch.nn.Module)
    )


class FastGuard:
    """Whether everything below some roots is what it was when the guard was made."""

    def __init__(
        self, sources: Sequence[Source], moving: Collection[int] = (), *, leaves: bool = False, asks: bool = False
    ) -> None:
        """``sources`` are the roots of a walk.

        ``moving`` are the identities of tensors in whose places there may be others of the same kind. Whether these
        are as many different ones is not for the guard to say. ``leaves`` says that it matters which tensors were
        computed of others, ``asks`` that attributes may come to tensors.
        """
        self._leaves, self._asks = leaves, asks
        self._moving = moving
        self._root = RootGuardManager()
        self._anchors: list[Any] = []
        self._anchored: dict[int, Any] = {}
        self._roots = len(sources)
        # Those below the roots: another class of one shows in no dict.
        self._modules: list[torch.nn.Module] = []
        # Constants that are guarded by identity: as long as they live, nothing else has their identity. Another
        # object that takes the place of a container that is gone is the same where its content is.
        self._alive: list[Any] = []
        # Members of enums, whose values somebody may set.
        self._members_of_enums: dict[int, enum.Enum] = {}
        # Has an element once something is gone whose identity may become another's.
        self.lost: list[Any] = []
        for source in sources:
            manager = self._root.tuple_getitem_manager(source.access[1], source.name, source.value, KIND)
            for safe in self._guard(manager, source).roots:
                safe.mark_tag_safe_root()

    def unchanged(self, space: dict[str, Any]) -> str:
        """An expression that says whether nothing has changed below ``roots``; its names go to ``space``."""
        space.update(root_check=self._root.check, lost=self.lost, fixed=tuple(self._anchors))
        tests = ["not lost", "root_check(roots + fixed)" if self._anchors else "root_check(roots)"]
        if self._modules:
            space.update(kinds=list(map(type, self._modules)), modules=self._modules)
            tests.append("list(map(type, modules)) == kinds")
        if self._members_of_enums:
            members = list(self._members_of_enums.values())
            space.update(members=members, value_of=operator.attrgetter("_value_"))
            space.update(values=[each._value_ for each in members], same=operator.is_)
            tests.append("all(map(same, map(value_of, members), values))")
        return " and ".join(tests)

    # ---- where values are found

    def _anchor(self, thing: Any) -> Any:
        """The manager of something that is always the same object: a module's globals, a closure's cell, a class."""
        found = self._anchored.get(id(thing))
        if found is None:
            index = self._roots + len(self._anchors)
            self._anchors.append(thing)
            found = self._root.tuple_getitem_manager(index, f"anchor {index}", thing, KIND)
            self._anchored[id(thing)] = found
        return found

    def _part(self, manager: Any, holder: Any, source: Source) -> Any:
        """The manager of a part, from that of the whole."""
        kind, *where = source.access
        name, value = source.name, source.value
        if kind == "attribute" and where[0] in (dict_of(holder) or {}):
            own = manager.get_generic_dict_manager(f"{name}.__dict__", vars(holder), KIND)
            return own.dict_getitem_manager(where[0], name, value, KIND)
        if kind in ("attribute", "get"):
            return manager.getattr_manager(where[0], name, value, KIND)
        if kind == "item":
            kind = type(holder).__name__ if type(holder) in (list, tuple) else ""
            get = getattr(manager, f"{kind}_getitem_manager" if kind else "getitem_manager")
            return get(where[0], name, value, KIND)
        if kind == "key":
            if not isinstance(where[0], _KEYS) and not is_constant(where[0]):  # it may be equal to others
                raise NoFastGuardError(name)
            return manager.dict_getitem_manager(where[0], name, value, KIND)
        if kind == "global":
            return self._anchor(where[0]).dict_getitem_manager(where[1], name, value, KIND)
        if kind == "builtin":
            return self._anchor(vars(builtins)).dict_getitem_manager(where[0], name, value, KIND)
        if kind == "cell":
            closure = manager.getattr_manager("__closure__", f"{name}.__closure__", holder.__closure__, KIND)
            index = next(i for i, cell in enumerate(holder.__closure__) if cell is value)
            return closure.tuple_getitem_manager(index, name, value, KIND)
        if kind == "call":
            return manager.weakref_call_manager(name, value, KIND)
        if kind == "member of":  # its container holds this one, and is guarded
            return self._anchor(value)
        if kind == "chain":
            whole = where[0][where[1]]
            found = self._anchor(where[0]).dict_getitem_manager(where[1], name, whole, KIND)
            for attribute in where[2]:
                whole = getattr(whole, attribute)
                found = found.getattr_manager(attribute, f"{name}.{attribute}", whole, KIND)
            return found
        raise NoFastGuardError(name)

    def _members(self, cls: type, sources: Sequence[Source]) -> None:
        """The members of a class are where they were in the order of the classes that it derives from."""
        order = self._anchor(cls).type_mro_manager(f"{cls.__name__}.__mro__", cls.__mro__, KIND)
        self._alive.append(cls.__mro__)
        order.add_id_match_guard(id(cls.__mro__), WORDS, None)
        for source in sources:
            if source.access[0] == "class":  # the class's own, which has members as well
                self._anchor(cls).add_type_match_guard(id(source.value), WORDS, None)
                self._members(source.value, source.parts)
            if source.access[0] == "name":
                _, known, name = source.access
                self._guard(self._anchor(known).getattr_manager(name, source.name, source.value, KIND), source)
        sources = [source for source in sources if source.access[0] == "member"]
        members = {(id(source.access[1]), source.access[2]): source for source in sources}
        names = {source.access[2] for source in sources}
        for i, base in enumerate(cls.__mro__):
            own: Any = None
            if is_users_class(base) or base is torch.Tensor:  # a member may be added
                own = self._anchor(base).type_dict_manager(f"{base.__name__}.__dict__", vars(base), KIND)
                own.add_dict_length_check_guard(len(vars(base)), WORDS, None)
            later = [name for name in names if any(name in vars(each) for each in cls.__mro__[i + 1 :])]
            for name in names:
                member = members.get((id(base), name))
                absent = name not in vars(base) and name in later
                if member is None and not absent:
                    continue
                own = own or self._anchor(base).type_dict_manager(f"{base.__name__}.__dict__", vars(base), KIND)
                if member is None:
                    own.add_dict_contains_guard(False, name, WORDS, None)
                else:
                    self._guard(own.dict_getitem_manager(name, member.name, member.value, KIND), member)

    # ---- what is demanded of them

    def _guard(self, manager: Any, source: Source) -> Safety:
        """Guard a value and its parts."""
        value = source.value
        if source.is_known() and id(value) in self._moving:
            return _safe(manager, immutable=True)
        if source.opaque or source.is_known() or is_constant(value):
            self._same(manager, value)
            return _safe(manager, immutable=is_constant(value))
        if isinstance(value, torch.Tensor):
            self._tensor(manager, value)
            for part in source.parts:  # the user's own attributes of it
                self._guard(self._part(manager, value, part), part)
            if self._asks:
                count = len(vars(value))
                manager.add_lambda_guard(lambda now: len(now.__dict__) == count, WORDS, None)
            return _safe(manager, immutable=not source.parts and not self._asks)
        self._same(manager, value)
        if isinstance(value, type):
            self._members(value, source.parts)
            return Safety(True, [])
        self._content(manager, source)
        empty = empty_slots(value)
        if empty:
            manager.add_lambda_guard(lambda now: empty_slots(now) == empty, WORDS, None)
        if _may_get_attributes(value) and all(part.access[0] != "class" for part in source.parts):
            self._attributes(manager, value, source.name)
        found = [self._guard_part(manager, value, part) for part in source.parts]
        roots = [root for each in found for root in each.roots]
        if isinstance(value, torch.nn.Module):
            shown = getattr(type(value), SHOWN, None)
            if source.access[0] != "root":
                self._modules += [value] if shown is None else [value, shown.module()]
            own = manager.get_generic_dict_manager(f"{source.name}.__dict__", vars(value), KIND)
            own.add_dict_length_check_guard(len(vars(value)), WORDS, None)
            if all(each.safe for each in found):
                own.mark_tag_safe()
                manager.mark_tag_safe()
                return Safety(True, [manager])
        # What moves a key of an ordered dict leaves its version as it was.
        versioned = type(value) is dict or (type(value) is collections.OrderedDict and len(value) <= 1)
        if versioned and all(each.safe for each in found):
            manager.mark_tag_safe()
            return Safety(True, roots)
        return Safety(False, roots)

    def _guard_part(self, manager: Any, holder: Any, part: Source) -> Safety:
        if part.access[0] == "class":
            manager.add_type_match_guard(id(part.value), WORDS, None)
            if not isinstance(holder, torch.nn.Module) and dict_of(holder) is not None:
                self._attributes(manager, holder, part.name)
            self._members(part.value, part.parts)
            return Safety(True, [])
        if part.access[0] == "content":
            return self._guard_content(manager, holder, part)
        return self._guard(self._part(manager, holder, part), part)

    @staticmethod
    def _attributes(manager: Any, holder: Any, name: str) -> None:
        """That an object has as many attributes as now."""
        held = manager.get_generic_dict_manager(f"{name}.__dict__", holder.__dict__, KIND)
        held.add_dict_length_check_guard(len(holder.__dict__), WORDS, None)

    def _guard_content(self, manager: Any, holder: Any, part: Source) -> Safety:
        """What only a call of Python gives: the value of a context variable, what a view shows."""
        if isinstance(holder, contextvars.ContextVar) and is_constant(part.value):
            value = part.value
            manager.add_lambda_guard(lambda now: now.get(None) is value, WORDS, None)
            return Safety(False, [])
        values = part.value
        if part.access == LOADED:
            loaded = dict.fromkeys(sys.modules).keys()
            self._anchor(sys.modules).add_lambda_guard(lambda now: now.keys() == loaded, WORDS, None)
            return Safety(False, [])
        if part.access[1] in ("environment", "pickled") or not isinstance(values, (dict, list)):
            raise NoFastGuardError(part.name)
        leaves = values.values() if isinstance(values, dict) else values
        if not all(map(is_constant, leaves)):
            raise NoFastGuardError(part.name)
        kind, keys = type(values), _texts(values)
        manager.add_lambda_guard(lambda now: _texts(kind(now)) == keys, WORDS, None)
        return Safety(False, [])

    def _content(self, manager: Any, source: Source) -> None:
        """That a container has its length or its keys, a function its code."""
        value = source.value
        if isinstance(value, (list, tuple)):
            manager.add_length_check_guard(len(value), WORDS, None)
        elif isinstance(value, dict):
            manager.add_dict_length_check_guard(len(value), WORDS, None)
            order = list(value)
            if len(order) > 1:
                manager.add_lambda_guard(lambda now: list(now) == order, WORDS, None)
        elif isinstance(value, collections.deque):
            length = len(value)
            manager.add_lambda_guard(lambda now: len(now) == length, WORDS, None)
        elif isinstance(value, (set, frozenset)):
            if not all(is_constant(each) or isinstance(each, _KEYS) for each in value):
                raise NoFastGuardError(source.name)
            keys = list(map(_member_key, value))
            self._alive += value
            manager.add_lambda_guard(lambda now: list(map(_member_key, now)) == keys, WORDS, None)
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise NoFastGuardError(source.name)
            content = array_key(value)
            manager.add_lambda_guard(lambda now: array_key(now) == content, WORDS, None)
        elif isinstance(value, (io.StringIO, io.BytesIO, bytearray, array.array, memoryview, threading.local)):
            raise NoFastGuardError(source.name)  # the last has other attributes in another thread
        elif isinstance(value, types.ModuleType) and source.parts:
            held = manager.get_generic_dict_manager(f"{source.name}.__dict__", vars(value), KIND)
            held.add_dict_length_check_guard(len(vars(value)), WORDS, None)
        elif isinstance(value, types.FunctionType):
            for name in source.key[2:] if source.key[1] is value.__code__ else ():
                self._anchor(value.__globals__).add_dict_contains_guard(False, name, WORDS, None)
            if source.parts:
                held = manager.getattr_manager("__dict__", f"{source.name}.__dict__", vars(value), KIND)
                held.add_dict_length_check_guard(len(vars(value)), WORDS, None)
            self._same(
                manager.getattr_manager("__code__", f"{source.name}.__code__", value.__code__, KIND), value.__code__
            )

    def _same(self, manager: Any, value: Any) -> None:
        if is_constant(value):
            self._alive.append(value)
            if isinstance(value, enum.Enum):
                self._members_of_enums[id(value)] = value
        elif not isinstance(value, (list, dict, tuple)):
            with contextlib.suppress(TypeError):
                self._alive.append(weakref.ref(value, self.lost.append))
        manager.add_id_match_guard(id(value), WORDS, None)

    def _tensor(self, manager: Any, tensor: torch.Tensor) -> None:
        if id(tensor) not in self._moving:
            self._same(manager, tensor)
        if self._leaves:
            leaf = tensor.is_leaf
            manager.add_lambda_guard(lambda now: now.is_leaf is leaf, WORDS, None)
        keys = torch._C._dispatch_keys(tensor)
        strides = list(tensor.stride()) if tensor.layout is torch.strided else []
        manager.add_tensor_match_guard(tensor, list(tensor.shape), strides, "tensor", WORDS, None, type(tensor), keys)


class NoFastGuardError(Exception):
    """There is no fast guard for a source: the world has to be walked."""


def _texts(values: Any) -> list[Any]:
    pairs = values.items() if isinstance(values, dict) else enumerate(values)
    return [(constant_key(key), constant_key(value)) for key, value in pairs]


@dataclass
class Safety:
    """Whether a manager is tag safe, and the outermost managers of modules at or below it that are."""

    safe: bool
    roots: list[Any]


def _safe(manager: Any, *, immutable: bool) -> Safety:
    if immutable:
        manager.mark_tag_safe()
    return Safety(immutable, [])
