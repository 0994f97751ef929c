"""match on structure: what is evaluated, in which order and how often; which names are bound after a failure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from differential import Truth, case, note


class Equal:
    """Notes what it is compared with, and that its comparison is tested."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        note(("eq", self.value, other))
        if other == "raise":
            raise ValueError("compared")
        return Truth(self.value == other, "eq")

    def __bool__(self):
        raise ValueError("no truth")

    def __repr__(self):
        return f"Equal({self.value!r})"


class Items(Sequence):
    """Notes all that is asked of it."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        note("len")
        return len(self.items)

    def __getitem__(self, index):
        note(("item", index))
        return self.items[index]

    def __iter__(self):
        note("iter")
        return iter(self.items)

    def __repr__(self):
        return f"Items{self.items!r}"


class Table(Mapping):
    """Notes all that is asked of it."""

    def __init__(self, **items):
        self.items_ = items

    def __len__(self):
        return len(self.items_)

    def __iter__(self):
        note("iter")
        return iter(self.items_)

    def __getitem__(self, key):
        note(("key", key))
        return self.items_[key]

    def get(self, key, default=None):
        note(("get", key))
        return self.items_.get(key, default)

    def __repr__(self):
        return f"Table({self.items_!r})"


class Meta(type):
    def __instancecheck__(cls, instance):
        note(("isinstance", cls.__name__))
        return type.__instancecheck__(cls, instance)


class Point(metaclass=Meta):
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.values = x, y

    @property
    def x(self):
        note("x")
        return self.values[0]

    @property
    def y(self):
        note("y")
        if self.values[1] == "raise":
            raise ValueError("y")
        return self.values[1]

    def __repr__(self):
        return f"Point{self.values!r}"


@dataclass
class Pair:
    left: object
    right: object


class Kind:
    ZERO = 0
    RAISE = "raise"


@case(((0, 5),), ((1, 5),), ((0, 0),), ((1, 1),), ([2, 3],), ((0,),), "ab", 7, None)
def values_in_sequences(s):
    match s:
        case (0, 0):
            r = "origin"
        case (0, y) | (y, 0):
            r = "axis", y
        case (x, 1 | 2 | 5 as y):
            r = x, y
        case [x, _]:
            r = x
        case (x,):
            r = "one", x
        case _:
            r = "none"
    return r


@case(
    (Items(Equal(0), Equal(1)),),
    (Items(Equal(0), Equal(2)),),
    (Items(Equal(3), Equal(2)),),
    (Items(Equal(3), Equal("x"), 1),),
    (Items(Equal(9), [Equal(3), 4]),),
    (Items(),),
)
def order_in_sequences(s):
    match s:
        case [0, 1]:
            return "a"
        case [0 | 3, 2 | 4 as b]:
            return "b", b
        case [3, *_, 1]:
            return "c"
        case [3, *rest, 2]:
            return "d", rest
        case [9, [3, *rest]]:
            return "e", rest
        case [_, *_, 2]:
            return "f"
    return "none"


@case((Items(Equal("raise"), 1),), (Items(Equal(1), Equal("raise")),))
def comparison_raises(s):
    match s:
        case [_, 1]:
            return "one"
        case [Kind.ZERO, Kind.RAISE]:
            return "zero"
        case [x, "raise"]:
            return x


@case((Point(Equal(0), Equal(1)),), (Point(0, [1, 2]),), (Point(2, (Equal(1), 5)),), (Point(0, "raise"),), (Equal(0),))
def classes(p):
    match p:
        case Point(0, 0):
            return "zero"
        case Point(x=Kind.ZERO, y=1):
            return "one"
        case Point(0, [1, y]):
            return y
        case Point(2, y=[1, int(z)] as both):
            return z, both
        case Point(x, y) if note(x) == y:
            return x
    return "none"


@case((Pair(0, Point(1, 2)),), (Pair(1, Point(Equal(1), Equal(2))),), (Pair(Pair(0, 0), Pair(0, 1)),), (Pair(1, Pair(2, 3)),))
def nested_classes(p):
    match p:
        case Pair(0, Point(1, y)):
            return y
        case Pair(1, Point(1, 2) as q):
            return q
        case Pair(Pair(0, a), Pair(0, b)):
            return a, b
        case Pair(left=a, right=Pair(2, 4) | Pair(_, 3)):
            return a


@case(
    (Table(kind=Equal(0), data=[1, 2]),),
    (Table(kind=1, data=[Equal(1), 2], more=3),),
    (Table(kind=Equal(2), more=Equal(3)),),
    (Table(),),
    ({"kind": 2, "more": 3, "others": 4},),
    ({"kind": 5, "more": 3, "others": 4},),
)
def mappings(d):
    match d:
        case {"kind": 0, "data": [x, y]}:
            return x, y
        case {"kind": 1, "data": [1, x], **rest}:
            return x, rest
        case {"kind": 2, "more": 3}:
            return "more"
        case {"kind": kind, **rest} if kind == 5:
            return rest
        case {"missing": 0} | {"others": _}:
            return "missing"
        case {}:
            return "none"


@case((1, 2), (0, 2), (0, 3), (5, 5), (7, 1))
def captures_stay_bound(a, b):
    x = y = z = "unbound"
    match a, b:
        case (x, 2) if x > 1:
            r = 1
        case (0, y) if y == 3:
            r = 2
        case (y, z) if y == z:
            r = 3
        case (5 | 7 as z, _):
            r = 4
        case _:
            r = 5
    return r, x, y, z


@case((0, 1), (1, 1), (2, 1))
def captures_stay_unbound(a, b):
    match a, b:
        case (0, x):
            r = "zero"
        case (1, y) if y != 1:
            r = "one"
        case (2, z):
            r = "two"
        case _:
            r = "none"
    names = sorted(locals())
    return r, names


@case(1, 5, 7, 8)
def captured_values(x):
    match x:
        case 1 as one:
            return one
        case (5 | 6) as n if n == 5:
            return "five", n
        case (7 as n) as m:
            return n, m
        case 0 | _:
            return "any"


@case((0, Truth(True)), (0, Truth(False)), (1, Truth(True)))
def guards_are_tested_once(a, t):
    match [a, t]:
        case [0, flag] if flag:
            return "yes"
        case [_, flag] if not flag:
            return "no"


@case((Equal(0), 1), (Equal(2), 1), (Equal(2), "raise"))
def guards_come_last(a, b):
    match a, b:
        case (0, c) if note(c) == 1:
            return "zero"
        case (2, "raise") if note(missing):  # noqa: F821
            return "raise"
        case (2, c) if note(c) == 1:
            return "two"


@case(4)
def jumps_from_structures(n):
    r = []
    for pair in zip(range(n), "abcdef"):
        match pair:
            case (0, letter):
                continue
            case (1, letter) if letter == "b":
                r.append(letter)
            case (3, letter):
                break
            case [number, _]:
                r.append(number)
    return r, letter, number


@case((None, 0), (True, 0), (False, 1), (1, 0), (0, 0))
def singletons_in_sequences(a, b):
    match a, b:
        case (None, 0):
            return "N"
        case (True, 0 | 1):
            return "T"
        case (False | None, n) if n:
            return "F", n
        case (1, _):
            return 1


@case((0, "ab"), (-1.5, "b"), (1 + 2j, b"x"))
def literals_over_lines(a, b):
    match a, b:
        case (
            0,
            "a"
            "b",
        ):
            return "ab"
        case (
            -1.5,  # minus
            Kind.
            ZERO | "b",
        ):
            return "b"
        case (1 + 2j, c):
            return c


@case(([1, [2, 3]],), ([1, [0]],), ([0, [2, 4]],))
def stars_between(s):
    match s:
        case [1, [*start, 3]]:
            return start
        case [*start, [0]]:
            return start
        case [_, [2, *_]]:
            return "two"


@case((Pair(0, Pair(Point(0, "raise"), 1)),), (Pair(0, Pair(Point(0, 2), 1)),))
def errors_in_properties(p):
    match p:
        case Pair(left=0, right=Pair(Point(x=0, y=2), right)) if right:
            return right


@case((Point(Equal(1), 2), 0), (Point(Equal(1), 2), Equal(3)), (Point(1, "raise"), 0), ([Point(1, 4)], Equal(5)))
def classes_before_values(p, n):
    match [p, n]:
        case [Point(x, y), 0]:
            return x, y
        case [Point(x=1, y=y), 3]:
            return y
        case [[Point(x=x) as p], 5]:
            return x, p
