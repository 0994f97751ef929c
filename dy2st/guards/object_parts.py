"""The attributes of objects: those whose names code can read, or all where a library's code reads them."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

import torch

from dy2st.guards.names import Names, is_users_class
from dy2st.guards.source import Source
from dy2st.values.plain_objects import attributes_of


def own_parts(names: Names, thing: Any) -> list[Source]:
    """The attributes of an object that can be read; of one that a library's code reads, all."""
    cls: Any = type(thing)
    if cls in _BARE:
        return []
    every = is_read_by_library(cls)
    parts = [
        Source(("attribute", name), value, f".{name}")
        for name, value in attributes_of(thing).items()
        if names.has(name) or (every and not names.is_frozen(name))
    ]
    of_tensor = issubclass(cls, torch.Tensor) and not is_users_class(cls)
    return parts if cls.__flags__ & _IMMUTABLE or of_tensor else [Source(("class",), cls, "'s class"), *parts]


@functools.cache
def is_read_by_library(cls: Any) -> bool:
    """Whether code that isn't looked at for names, of Python's own library or of torch, reads the objects of a class.

    Loggers, threads and the like are left out, and what spreads modules over processes: they lead to the whole process.
    """
    if issubclass(cls, torch.Tensor):
        return False
    bases: tuple[Any, ...] = cls.__mro__
    homes = {base.__module__ for base in bases if _has_methods(base) and not is_users_class(base)}
    apart = any(home.partition(".")[0] in _OF_THE_PROCESS or home.startswith("torch.distributed.") for home in homes)
    return bool(homes) and not apart


def _has_methods(cls: Any) -> bool:
    return any(isinstance(member, (types.FunctionType, property)) for member in vars(cls).values())


_OF_THE_PROCESS = frozenset(
    "abc typing contextlib logging threading _thread concurrent multiprocessing asyncio queue socket subprocess "
    "importlib unittest".split()
)
_IMMUTABLE = 1 << 8  # the flag of classes that nobody can give members to
_BARE = frozenset((list, tuple, dict, set, frozenset, collections.deque, collections.OrderedDict))
