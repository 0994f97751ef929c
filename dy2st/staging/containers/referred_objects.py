"""Objects that are made as references, see ``values.references``: what makes them, and what they do.

The first attempt to stage a model makes objects as Python does. Where one is changed that is an element of a list of
data-dependent length, the attempt is given up for one in which all objects of the class are references.
"""

from __future__ import annotations

import copy
import functools
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from dy2st.errors import DifferentStructureError
from dy2st.operators.export_session import current
from dy2st.plan import plan
from dy2st.source.user_frames import is_ours, running_location
from dy2st.staging.containers.attributes import METHODS
from dy2st.staging.containers.data_key_limits import refuse_of_one
from dy2st.staging.containers.data_lists import DataListDict
from dy2st.staging.containers.object_tables import ObjectTable, Record, ReferredList
from dy2st.staging.containers.reference_fields import ITEMS, listed_anew, load_field, store_field
from dy2st.staging.session import MODE, Session
from dy2st.values.plain_objects import TABLE, attributes_of, is_plain_class
from dy2st.values.references import (
    HANDLE,
    MadeLists,
    class_behind,
    handle_of,
    qualified_name,
    refer,
    reference_class,
    table_of,
)
from dy2st.values.undefined import UNSET


class ReferenceClasses:
    """Those of one export, by the class that they stand for."""

    def __init__(self) -> None:
        self.made: dict[type, type] = {}
        # By the keys of dicts.
        self.records: dict[tuple[str, ...], type] = {}
        # By what the plan calls their table.
        self.lists: dict[Any, type] = {}


def referring(capture: Session, cls: type, make: Callable[..., Any]) -> Callable[..., Any]:
    """What makes an object of a class: a reference, if the plan says so."""
    if qualified_name(cls) not in plan().referred or not is_plain_class(cls):
        return make

    @functools.wraps(cls, updated=())
    def made(*args: Any, **kwargs: Any) -> Any:
        return _entered(capture, cls, make(*args, **kwargs))

    return made


def _entered(capture: Session, cls: type, made: Any) -> Any:
    """A reference to a new row, with what an object has just got by its constructor."""
    if type(made) is not cls:
        return made
    values = attributes_of(made)
    for name in sorted(plan().referred[qualified_name(cls)] - values.keys()):
        values[name] = _of_class(cls, name)
    kinds = current().part(ReferenceClasses).made
    if cls not in kinds:
        kinds[cls] = reference_class(
            cls, _empty_table(capture, f"objects of class {cls.__name__}", values), _members(cls)
        )
    kind = kinds[cls]
    table = vars(kind)[TABLE]
    if values.keys() != set(table.names):
        odd = sorted(values.keys() ^ set(table.names))
        raise DifferentStructureError(
            f"objects of class {cls.__name__} differ in whether they have an attribute {odd[0]!r}",
            hint="set all attributes in __init__",
            location=running_location(),
        )
    return refer(kind, capture.call(table.add)(values))


def record(capture: Session, made: dict[str, Any]) -> Any:
    """A dict that the code has made, with these keys: as a reference, if the plan says so."""
    names = tuple(made)
    if names not in plan().records:
        return made
    kinds = current().part(ReferenceClasses).records
    if names not in kinds:
        capture.convert_class(Record)
        kinds[names] = reference_class(Record, _empty_table(capture, "dicts with these keys", made), {})
    kind = kinds[names]
    return refer(kind, capture.call(vars(kind)[TABLE].add)(made))


def listed(capture: Session, made: list[Any], site: Any) -> Any:
    """A list that the code has made at ``site``: as a reference, if the plan says so."""
    if is_ours(site[0].co_filename):
        return made
    if site not in plan().listed:
        current().part(MadeLists).made[id(made)] = made, site
        return made
    kinds, table = current().part(ReferenceClasses).lists, plan().listed[site]
    if table not in kinds:
        capture.convert_class(ReferredList)
        kinds[table] = reference_class(ReferredList, _empty_table(capture, "lists", {ITEMS: []}), {})
    return listed_anew(kinds[table], made)


def _empty_table(capture: Session, called: str, like: dict[str, Any]) -> ObjectTable:
    lists = {name: capture.call(DataListDict)([], dict) for name, value in like.items() if type(value) is list}
    columns: dict[str, Any] = {name: [] for name in like if name not in lists}
    table = ObjectTable(called, tuple(like), columns, lists)
    # It is everybody's, wherever the first object is made: changes of it are the business of each path and iteration.
    held = [each for rows in lists.values() for each in vars(rows).values() if isinstance(each, list)]
    for each in (table.count, *columns.values(), *lists.values(), *held):
        capture.trace_frames[-1].born.pop(id(each), None)
        capture.trace_frames[0].born[id(each)] = each
    return table


def _of_class(cls: type, name: str) -> Any:
    """What an object has by its class, until it gets one of its own."""
    value = getattr(cls, name, UNSET)
    if value is UNSET or isinstance(value, METHODS) or hasattr(type(value), "__get__"):
        raise DifferentStructureError(
            f"an attribute {name!r} of class {cls.__name__} is set after the object was made",
            hint="set all attributes in __init__",
            location=running_location(),
        )
    return value


def _has(owner: Any, name: str) -> bool:
    return name in table_of(owner).names


def load(owner: Any, name: str) -> Any:
    """An attribute of a reference."""
    if name == "__dict__" and not is_ours(sys._getframe(1).f_code.co_filename):
        refuse_asking(owner, "__dict__")
    if name == HANDLE or not _has(owner, name) or MODE.capture is None:
        return object.__getattribute__(owner, name)
    return load_field(owner, name)


def store(owner: Any, name: str, value: Any) -> None:
    """A store to an attribute of one."""
    if isinstance(getattr(type(owner), name, None), property):
        object.__setattr__(owner, name, value)
    elif _has(owner, name) and MODE.capture is not None:
        store_field(owner, name, value)
    else:
        # It is an attribute from the beginning, in another attempt.
        plan().refer_to(qualified_name(class_behind(owner)), name)


def same_object(a: Any, b: Any) -> Any:
    """Whether two references are to one object."""
    if type(a) is not type(b):
        return False
    one, other = handle_of(a), handle_of(b)
    return one == other


def refuse_asking(owner: Any, what: str) -> NoReturn:
    """``what`` of a reference can't be had.

    Raises:
        SharedContainerError: at the user's line.
    """
    refuse_of_one(f"an object of class {class_behind(owner).__name__}", what, "use its attributes one by one")


def _copied(owner: Any) -> Any:
    assert MODE.capture is not None
    table = table_of(owner)
    values = {name: load(owner, name) for name in table.names}
    values |= {name: MODE.capture.call(values[name].copy)() for name in table.lists}
    return refer(type(owner), MODE.capture.call(table.add)(values))


def _deeply_copied(owner: Any, _: dict[int, Any]) -> Any:
    table = table_of(owner)
    if table.lists or MODE.capture is None:
        refuse_asking(owner, "a deep copy")
    copied = MODE.capture.call(copy.deepcopy)
    values = {name: copied(load(owner, name)) for name in table.columns}
    return refer(type(owner), MODE.capture.call(table.add)(values))


def _reduced(owner: Any, _: Any) -> NoReturn:
    refuse_asking(owner, "a pickle")


def _text(owner: Any) -> NoReturn:
    refuse_asking(owner, "the text")


def _compared(owner: Any, _: Any) -> NoReturn:
    refuse_asking(owner, "a comparison")


def _hash(owner: Any) -> NoReturn:
    refuse_asking(owner, "the hash")


def _deleted(owner: Any, name: str) -> NoReturn:
    refuse_asking(owner, f"the deletion of {name!r}")


def _named(owner: Any) -> list[str]:
    return sorted({*object.__dir__(owner), *table_of(owner).names})


def _members(cls: type) -> dict[str, Callable[..., Any]]:
    """The special methods of references to objects of a class: where the class has none of its own."""
    found: dict[str, Callable[..., Any]] = {
        "__getattribute__": load,
        "__setattr__": store,
        "__delattr__": _deleted,
        "__reduce_ex__": _reduced,
        "__dir__": _named,
        "__copy__": _copied,
        "__deepcopy__": _deeply_copied,
    }
    compares: Any = cls.__eq__
    if compares is object.__eq__:
        found |= {"__eq__": same_object, "__hash__": _hash}
    elif not isinstance(compares, types.FunctionType):
        found["__eq__"] = _compared
    if not isinstance(cls.__repr__, types.FunctionType):
        found["__repr__"] = _text
    return found
