"""References: what stands for an object that is one row of a table, and which row is known only when the graph runs.

A reference is of a class that derives from the object's own, so that its methods, properties and ``isinstance`` are
those of the object. It holds nothing but its *handle*, the number of its row. The fields are in the table of the class,
which whoever makes the class gives it.

Source: structure of arrays with handles, as entity component systems have it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

from dy2st.operators.export_session import current
from dy2st.plan import plan
from dy2st.source.escape_analysis import escapes_its_constructor
from dy2st.values.plain_objects import TABLE, Opened, is_plain, is_plain_class

# Where a program makes lists at more places than these, an attempt with references to all takes too long.
MOST_SITES = 6
# The attribute of a reference that is its handle; that of its class which is the table is TABLE.
HANDLE = "_dy2st_handle"


def is_reference(value: Any) -> bool:
    """Whether a value is a reference."""
    return TABLE in type(value).__dict__


def is_reference_class(kind: Any) -> bool:
    """Whether a class is one of references."""
    return isinstance(kind, type) and TABLE in vars(kind)


def table_of(value: Any) -> Any:
    """The table of a reference's class."""
    return type(value).__dict__[TABLE]


def handle_of(value: Any) -> Any:
    """The number of a reference's row: an int, or a staged one."""
    return object.__getattribute__(value, HANDLE)


def class_behind(value: Any) -> type:
    """The user's class of a reference."""
    found: type = type(value).__mro__[1]
    return found


def qualified_name(cls: type) -> str:
    """The name of a class: one that the model itself defines is another one in each attempt to stage it."""
    return f"{cls.__module__}.{cls.__qualname__}"


def refer_to(owner: Any) -> None:
    """``owner`` is asked for what is known of a reference only: where there can be one, the attempt is begun anew."""
    cls: type = type(owner)
    if is_plain(owner):
        refer_to_objects_of(cls)
    if cls is dict and owner and all(isinstance(key, str) for key in owner) and tuple(owner) not in plan().records:
        plan().refer_to_records(tuple(owner))


def refer_to_objects_of(cls: type) -> None:
    """The same of all objects of a class."""
    if is_plain_class(cls) and can_be_referred(cls) and qualified_name(cls) not in plan().referred:
        plan().refer_to(qualified_name(cls))


class MadeLists:
    """The lists that the code has made, each with the place, and the places of those that are elements of rows."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Any, Any]] = {}
        self.met: set[Any] = set()
        # The places of lists that the elements are put into.
        self.outer: set[Any] = set()
        # Elements of rows that hold lists.
        self.holders: list[Any] = []


def note_list(value: Any, parts: Iterable[Any] = ()) -> None:
    """A value is an element of a list of data-dependent length, or part of one: it may be a list, or hold lists."""
    lists = current().part(MadeLists)
    if type(value) is list:
        known, site = lists.made.get(id(value), (None, None))
        if known is value:
            lists.met.add(site)
    elif any(type(part) is list for part in parts):
        lists.holders.append(value)


def note_outer(owner: Any) -> None:
    """A list gets elements that may be lists."""
    lists = current().part(MadeLists)
    known, site = lists.made.get(id(owner), (None, None))
    if known is owner and known is not None:
        lists.outer.add(site)


def refer_to_lists() -> None:
    """A list is asked for what is known of a reference only: where such can be made, the attempt is begun anew."""
    lists = current().part(MadeLists)
    for holder in lists.holders:
        refer_to(holder)
    # Those that are elements are most likely to be of one kind, and to be put in one place of another.
    tables = dict.fromkeys(lists.met - plan().listed.keys(), "elements")
    # A list by path has no place of its own, nor has the sum of two: they are references where all lists are.
    others = dict.fromkeys(site for _, site in lists.made.values() if site not in plan().listed)
    tables = tables or dict.fromkeys(others.keys() - lists.outer, "elements")
    tables = tables or {site: site for site in others}
    if tables and len(tables) <= MOST_SITES:
        plan().refer_to_lists(tables)


def compares_itself(kind: Any) -> bool:
    """Whether this is a class of references to objects that are not equal only to themselves."""
    return is_reference_class(kind) and kind.__mro__[1].__eq__ is not object.__eq__


def refer(kind: type, handle: Any) -> Any:
    """A reference of the derived class ``kind`` to a row."""
    new: Any = kind.__new__
    made = new(kind)
    object.__setattr__(made, HANDLE, handle)
    return made


def opened_reference(value: Any) -> Opened:
    """A reference's handle, how to build one from another handle, and the class."""
    kind = type(value)
    return [handle_of(value)], lambda children: refer(kind, children[0]), (kind, (HANDLE,))


def can_be_referred(cls: type) -> bool:
    """Whether all that objects of a plain class do with their attributes is to load and to store them.

    Their constructor hands none of them on: who has it would have another object than the reference.
    """
    own = [
        getattr(cls, name) is not getattr(object, name) for name in ("__setattr__", "__delattr__", "__getattribute__")
    ]
    if any(own) or hasattr(cls, "__getattr__"):
        return False
    if type(cls) is not type or not isinstance(cls.__init_subclass__, types.BuiltinMethodType):
        return False
    members = [member for base in cls.__mro__[:-1] for member in vars(base).values()]
    known = all(isinstance(member, _KNOWN) or not hasattr(type(member), "__get__") for member in members)
    return known and not escapes_its_constructor(cls)


_KNOWN = (
    types.FunctionType,
    classmethod,
    staticmethod,
    property,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
)


def reference_class(cls: type, table: Any, members: dict[str, Callable[..., Any]]) -> type:
    """The class of references to objects of ``cls``; ``members`` are its special methods."""
    namespace = {
        "__slots__": (HANDLE,),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__class__": property(lambda _: cls),
        TABLE: table,
        **members,
    }
    return type(cls.__name__, (cls,), namespace)
