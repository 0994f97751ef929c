"""Changes to what enums, sets, keys, objects of C and classes of libraries hold, and to what libraries answer."""

from __future__ import annotations

import abc
import contextvars
import datetime as dt
import decimal
import enum
import functools
import gc
import math
import operator
import re
import string
import threading
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional

from tests.static.world import Change, put, set_to

NUMBER = 2


class Planet(enum.Enum):
    EARTH = 1

    def scale(self) -> int:
        return self.value * NUMBER


class Weighted(enum.Enum):
    ONE = 1


WEIGHTED: Any = Weighted.ONE
WEIGHTED.weight = 3


class Zone(dt.tzinfo):
    hours = 2

    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta(hours=self.hours)

    def __repr__(self) -> str:
        return "Zone"


class Day(dt.date):
    extra = 2


class Price(decimal.Decimal):
    pass


class Held:
    def __init__(self, v: int) -> None:
        self.v = v


class Slotted:
    __slots__ = ("a", "b")
    a: int
    b: int


class Local(threading.local):
    v = 2


class Array(np.ndarray[Any, Any]):
    scale = 2


class Abstract(abc.ABC):  # noqa: B024  it says who is one, alone
    pass


class Flagged(abc.ABCMeta):
    said = True

    def __instancecheck__(cls, _: object) -> bool:
        return cls.said


class Asking(metaclass=Flagged):
    pass


@typing.runtime_checkable
class Going(typing.Protocol):
    def go(self) -> int: ...


class Family:
    pass


@functools.cache
def remembered(n: int) -> int:
    return n * NUMBER


@functools.cache
def remembered_list() -> list[int]:
    return [NUMBER]


HELD = Held(2)
MEMBERS, KEYS = {HELD}, {HELD: 1}
WEAK = weakref.WeakSet([HELD])
ZONE, DAY = Zone(), Day(2020, 1, 2)
NOON: Any = dt.datetime(2020, 1, 1, tzinfo=ZONE)
PRICE, GETTER = Price(2), operator.itemgetter(0)
MATCH = re.match("a(b+)", "abb")
LOCAL, SLOTTED = Local(), Slotted()
SLOTTED.a = 2
ARRAY = np.zeros(3).view(Array)
FLAGS = np.ones(3)
VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("variable")
CONTEXT = contextvars.copy_context()
CONTEXT.run(VARIABLE.set, 2)
TEMPLATE: Any = string.Template("a")
string.Template.bonus = 2  # type: ignore[attr-defined]
SHELF = types.SimpleNamespace(library=math)
FUNCTIONS = [functional]
SMALL_ORDER, ORDERED = {8, 0}, [{0, 8}, {8, 0}]


def registered() -> Callable[[], Any]:
    """What makes a class that is new one of the abstract ones; classes of an abstract one can't be taken back."""
    return lambda: Abstract.register(type("New", (), {}))


def imports_inside(x: Tensor) -> Tensor:
    from math import sqrt

    return x * sqrt(4.0)


def through_a_name(x: Tensor) -> Tensor:
    library = math
    return x * library.sqrt(4.0)


def goes_through(holder: Any) -> Callable[[Tensor], Tensor]:
    def model(x: Tensor) -> Tensor:
        for each in holder:
            x = x * each.v
        return x if x.sum() > 0 else -x

    return model


def orders(x: Tensor) -> Tensor:
    for each in SMALL_ORDER:
        x = x * 2 + each
    return x


def held_reads() -> dict[str, Change]:
    """Functions, and what is changed of what they read."""
    this: dict[str, Any] = globals()
    root, relu, times, norm = math.sqrt, functional.relu, Tensor.__mul__, Tensor.norm
    nine, seven = set_to(math, "sqrt", lambda _: 9.0), set_to(functional, "relu", lambda x, *_: x * 7)
    back, native = set_to(math, "sqrt", root), set_to(functional, "relu", relu)
    v, w = set_to(HELD, "v", 5), set_to(HELD, "v", 2)
    made: list[Any] = []

    def forget() -> None:
        made.clear()
        gc.collect()

    return {
        "what an enum's method reads": Change(
            lambda x: x * Planet.EARTH.scale(), put(this, "NUMBER", 5), put(this, "NUMBER", 2)
        ),
        "an enum's method": Change(
            lambda x: x * Planet.EARTH.scale(),
            set_to(Planet, "scale", lambda _: 7),
            set_to(Planet, "scale", Planet.scale),
        ),
        "an attribute of a member": Change(
            lambda x: x * WEIGHTED.weight, set_to(WEIGHTED, "weight", 5), set_to(WEIGHTED, "weight", 3)
        ),
        "a zone of the user's": Change(
            lambda x: x * (NOON.utcoffset().total_seconds() / 3600),
            set_to(ZONE, "hours", 5),
            lambda: delattr(ZONE, "hours"),
        ),
        "an attribute of a date": Change(lambda x: x * DAY.extra, set_to(Day, "extra", 5), set_to(Day, "extra", 2)),
        "an object of C's with a class of the user's": Change(
            lambda x: x * float(PRICE), put(this, "PRICE", Price(3)), put(this, "PRICE", PRICE)
        ),
        "a getter of an item": Change(
            lambda x: x * GETTER([2, 3]), put(this, "GETTER", operator.itemgetter(1)), put(this, "GETTER", GETTER)
        ),
        "a match": Change(
            lambda x: x * len(MATCH.group(1)),  # type: ignore[union-attr]
            put(this, "MATCH", re.match("a(b+)", "abbbb")),
            put(this, "MATCH", MATCH),
        ),
        "an object in a set": Change(goes_through(MEMBERS), v, w),
        "an object that is a key": Change(goes_through(KEYS), v, w),
        "an object in a weak set": Change(goes_through(WEAK), v, w),
        "the order of a set": Change(
            orders, put(this, "SMALL_ORDER", ORDERED[0]), put(this, "SMALL_ORDER", ORDERED[1])
        ),
        "a slot that is filled": Change(
            lambda x: x * (SLOTTED.b if hasattr(SLOTTED, "b") else SLOTTED.a),
            set_to(SLOTTED, "b", 5),
            lambda: delattr(SLOTTED, "b"),
        ),
        "an attribute of a thread": Change(lambda x: x * LOCAL.v, set_to(LOCAL, "v", 5), lambda: delattr(LOCAL, "v")),
        "a variable in a context": Change(
            lambda x: x * CONTEXT[VARIABLE], lambda: CONTEXT.run(VARIABLE.set, 5), lambda: CONTEXT.run(VARIABLE.set, 2)
        ),
        "a class of arrays": Change(lambda x: x * ARRAY.scale, set_to(Array, "scale", 5), set_to(Array, "scale", 2)),
        "whether an array is written to": Change(
            lambda x: x * (2 if FLAGS.flags.writeable else 3),
            lambda: FLAGS.setflags(write=False),
            lambda: FLAGS.setflags(write=True),
        ),
        "a class of Python's": Change(
            lambda x: x * string.Template.bonus,  # type: ignore[attr-defined]
            set_to(string.Template, "bonus", 5),
            set_to(string.Template, "bonus", 2),
        ),
        "the class of an object of Python's": Change(
            lambda x: x * TEMPLATE.bonus, set_to(string.Template, "bonus", 5), set_to(string.Template, "bonus", 2)
        ),
        "a function of a library by another name": Change(through_a_name, nine, back),
        "a function of a library, imported inside": Change(imports_inside, nine, back),
        "a library in an attribute": Change(lambda x: x * SHELF.library.sqrt(4.0), nine, back),
        "a library in a list": Change(lambda x: FUNCTIONS[0].relu(x) if x.sum() > 0 else x, seven, native),
        "an operator of tensors": Change(
            lambda x: x * 3, set_to(Tensor, "__mul__", lambda x, y: x + y), set_to(Tensor, "__mul__", times)
        ),
        "a method that a function of torch's calls": Change(
            lambda x: functional.normalize(x, dim=0),
            set_to(Tensor, "norm", lambda x, *_, **__: x.sum()),
            set_to(Tensor, "norm", norm),
        ),
        "what is remembered": Change(
            lambda x: x * remembered(3),
            lambda: (put(this, "NUMBER", 5)(), remembered.cache_clear()),
            lambda: (put(this, "NUMBER", 2)(), remembered.cache_clear()),
        ),
        "a list that is remembered": Change(
            lambda x: x * remembered_list()[0],
            put(remembered_list(), 0, 5),
            put(remembered_list(), 0, 2),
        ),
        "the classes of an abstract one": Change(
            lambda x: x * 2 if isinstance(HELD, Abstract) else x, registered(), registered()
        ),
        "what a metaclass says": Change(
            lambda x: x * 2 if isinstance(3, Asking) else x,
            set_to(Flagged, "said", False),
            set_to(Flagged, "said", True),
        ),
        "members that a protocol asks for": Change(
            lambda x: x * 2 if isinstance(HELD, Going) else x,
            set_to(Held, "go", lambda _: 1),
            lambda: delattr(Held, "go"),
        ),
        "classes that derive from one": Change(
            lambda x: x * (1 + len(Family.__subclasses__())), lambda: made.append(type("Child", (Family,), {})), forget
        ),
        "what numpy does at errors": Change(
            lambda x: x * len(np.geterr()["divide"]),
            lambda: np.seterr(divide="raise"),
            lambda: np.seterr(divide="warn"),
        ),
        "whether garbage is collected": Change(lambda x: x * 2 if gc.isenabled() else x, gc.disable, gc.enable),
    }
