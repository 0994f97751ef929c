"""What code can read of a class: its members, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from dy2st.calls.progress_bars import is_progress_bar
from dy2st.conversion import MADE_WITH, STATIC_CLASS_OF
from dy2st.guards.constants import is_constant
from dy2st.guards.names import Names, is_users_class
from dy2st.guards.source import Same, Source

_DERIVED = frozenset(("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__init_subclass__"))
# What a class says of itself that is none of its members.
_NAMES = frozenset(("__name__", "__qualname__"))
_CALLED = (classmethod, staticmethod, property)


def described_class(names: Names, cls: type) -> tuple[Any, Iterable[Source]]:
    """What is fixed of a class, and its members that can be read."""
    if names.learning and getattr(cls, "_is_protocol", False):  # isinstance() asks for all its members by name
        bases = [base for base in cls.__mro__ if getattr(base, "_is_protocol", False)]
        asked = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", ()))}
        names.attributes |= {name for name in asked if not name.startswith("_")}
    if issubclass(cls, torch.autograd.Function):
        names.add_call_of_function()
    parts = [*_members(names, cls)]
    if is_users_class(type(cls)):  # which has members of its classes
        parts.append(Source(("class",), type(cls), "'s class"))
    return ("class", Same(cls), tuple(map(Same, cls.__mro__))), parts


def _members(names: Names, cls: type) -> Iterator[Source]:
    """The members of a class that can be read: those that are named, and those that Python calls by itself."""
    bar = is_progress_bar(cls)  # its methods do not run in a capture
    for base in cls.__mro__:
        users = is_users_class(base) and not bar
        made = vars(base).get(MADE_WITH, ())
        for name, member in vars(base).items():
            implicit = users and name[:2] == "__" and (callable(member) or isinstance(member, _CALLED))
            told = name not in _DERIVED or (users and name in names.told)
            read = (implicit or names.has(name)) and told and name not in made and not names.is_frozen(name)
            # Also behind another one of its name, which may ask for it by super().
            if read and not names.is_bookkeeping(base, name):
                opaque = not users and not is_constant(member) and (name != "forward" or not callable(member))
                yield Source(("member", base, name), member, f".{name}", opaque=opaque)
    known = vars(cls).get(STATIC_CLASS_OF, cls)  # a class of ours has the names that this one had
    for name in sorted(_NAMES & names.told) if is_users_class(cls) else ():
        yield Source(("name", known, name), getattr(known, name), f".{name}")
