"""A value that is of one of several kinds, by the path that was taken.

It may be ``None`` or a tensor, a float or an int tensor, one of two strings, modules or functions, no value at all.
A ``TaggedUnion`` holds a 0-d int64 tensor, the *tag*, and the value for each tag. Whatever is done with it is done with
each of its cases, under a branch on the tag: what eager would do for the case that it is. ``None + 1`` raises in eager,
so that case becomes a guard.

Source: tagged unions; torch.jit's ``Optional`` and ``Union`` types are the nearest of kin.
"""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from dy2st.errors import DifferentObjectsError, DifferentStructureError, StagedNumberError
from dy2st.operators.export_session import current
from dy2st.values.staged_text import UNKNOWN, text

MOST_CASES = 12


class TaggedUnions:
    """Those of one export. ``any``: whether there are any; without, nothing has to look for them."""

    def __init__(self) -> None:
        self.any = False
        # What has been put into texts, and how it was to be formatted.
        self.formatted: list[tuple[TaggedUnion, str]] = []
        # Calls a function for each case of those among its arguments; the capture puts its own way here.
        self.distribute: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _refused


def _refused(_function: Any, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
    raise DifferentObjectsError("a value of one of several kinds is used after the capture", hint="return it")


def any_unions() -> bool:
    """Whether there may be tagged unions."""
    return current().part(TaggedUnions).any


class TaggedUnion:
    """``cases[tag]``; ``tag`` is a 0-d int64 tensor of the graph."""

    def __init__(self, tag: torch.Tensor, cases: list[Any]) -> None:
        object.__setattr__(self, "_one_of", (tag, tuple(cases)))
        current().part(TaggedUnions).any = True

    # numpy leaves operators to this class.
    __array_ufunc__ = None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return distributed(func, *args, **(kwargs or {}))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise StagedNumberError(
            "a value that is one of several, depending on the path taken, is used as an array of numpy's",
            hint="use it in each of the branches, or compute with torch functions",
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> TaggedUnion:
        tag, cases = self._one_of
        return TaggedUnion(tag, [copy.deepcopy(case, memo) for case in cases])

    def __getattr__(self, name: str) -> Any:
        if name in ("_one_of", "__array__", "__array_interface__", "__array_struct__", "__torch_function__"):
            raise AttributeError(name)
        return distributed(getattr, self, name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call each case."""
        return distributed(None, self, *args, **kwargs)

    def __iter__(self) -> Any:
        elements = distributed(tuple, self)
        if isinstance(elements, TaggedUnion):
            raise DifferentStructureError(
                "the elements of a value are taken, and how many there are depends on the path taken before",
                hint="give it the same number of elements on every path, or take them inside the branches",
            )
        return iter(elements)

    def __bool__(self) -> bool:
        return bool(distributed(bool, self))

    def __repr__(self) -> str:
        return str(text(f"<one of several, {UNKNOWN}>"))

    def __format__(self, spec: str) -> str:
        known = current().part(TaggedUnions).formatted
        known.append((self, spec))
        return str(text(f"<one of several #{len(known) - 1}, {UNKNOWN}>"))

    def __hash__(self) -> int:
        raise StagedNumberError(
            "a value that is one of several, depending on the path taken, is used as a key or set member",
            hint="use it in each of the branches, or keep such values in a list",
        )


_IN_TEXT = re.compile(rf"<one of several #(\d+), {UNKNOWN}>")
_WITH_A_TEXT = (str, int, float, bool, type(None))


def has_texts(value: Any) -> bool:
    """Whether a value is one of several constants, each of which has a text."""
    return isinstance(value, TaggedUnion) and all(type(case) in _WITH_A_TEXT for case in cases_of(value))


def text_by_case(made: Any) -> Any:
    """What was formatted: where one value of several constants stands in it, one text for each of these."""
    if not isinstance(made, str) or not str.__contains__(made, UNKNOWN):
        return made
    formatted = current().part(TaggedUnions).formatted
    found = [int(number) for number in _IN_TEXT.findall(str.__str__(made))]
    unions = {id(formatted[number][0]): formatted[number][0] for number in found}
    if len(unions) != 1:
        return text(made)
    (union,) = unions.values()
    if not has_texts(union):
        return text(made)

    def of(case: Any) -> str:
        return _IN_TEXT.sub(lambda at: format(case, formatted[int(at[1])][1]), str.__str__(made))

    texts = [of(case) for case in cases_of(union)]
    return text(made) if any(UNKNOWN in each for each in texts) else TaggedUnion(tag_of(union), texts)


def distributed(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)`` for each case of the TaggedUnion arguments; None calls the first argument."""
    return current().part(TaggedUnions).distribute(function, args, kwargs)


def tag_of(value: TaggedUnion) -> torch.Tensor:
    """The tag: 0-d int64."""
    tag: torch.Tensor = object.__getattribute__(value, "_one_of")[0]
    return tag


def cases_of(value: Any) -> tuple[Any, ...]:
    """The cases of a TaggedUnion; any other value is its own only case."""
    if not isinstance(value, TaggedUnion):
        return (value,)
    cases: tuple[Any, ...] = object.__getattribute__(value, "_one_of")[1]
    return cases


class Retagged:
    """The tag of a TaggedUnion whose cases are numbered anew."""

    def __init__(self, tag: torch.Tensor, numbers: list[int]) -> None:
        self.tag = tag
        self.numbers = numbers

    def tensor(self) -> torch.Tensor:
        """The new tag; traced."""
        found = torch.full((), self.numbers[-1], dtype=torch.int64)
        for old, new in enumerate(self.numbers[:-1]):
            found = torch.where(self.tag == old, torch.full((), new, dtype=torch.int64), found)
        return found


OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split(),
    "neg pos invert abs lt le gt ge eq ne getitem setitem delitem contains len int float index round".split(),
)


def _define(name: str) -> None:
    special = f"__{name}__"

    def method(self: TaggedUnion, *args: Any) -> Any:
        return distributed(getattr(operator, special, None) or _special(special), self, *args)

    setattr(TaggedUnion, special, method)


def _special(name: str) -> Callable[..., Any]:
    def call(owner: Any, *args: Any) -> Any:
        return getattr(type(owner), name)(owner, *args)

    return call


def _define_reflected(name: str) -> None:
    function = getattr(operator, f"__{name}__")

    def method(self: TaggedUnion, other: Any) -> Any:
        return distributed(function, other, self)

    setattr(TaggedUnion, f"__r{name}__", method)


for _name in OPERATORS[0]:
    _define(_name)
    _define(f"i{_name}")
    _define_reflected(_name)
for _name in OPERATORS[1]:
    _define(_name)


# ---- what a test says of a tag


def implied(node: fx.Node, value: bool) -> dict[tuple[fx.Node, int], bool]:
    """What follows of tags if the test computed by ``node`` is ``value``: (tag, case) pairs that hold, or don't."""
    aten = torch.ops.aten
    if node.op != "call_function":
        return {}
    args = node.args
    if node.target in (aten.logical_not.default, aten.bitwise_not.default) and isinstance(args[0], fx.Node):
        return implied(args[0], not value)
    if node.target in (aten.clone.default, aten.alias.default, aten.view.default) and isinstance(args[0], fx.Node):
        return implied(args[0], value)
    both = aten.logical_and.default if value else aten.logical_or.default
    if node.target is both:
        found: dict[tuple[fx.Node, int], bool] = {}
        for part in args:
            if isinstance(part, fx.Node):
                found.update(implied(part, value))
        return found
    if node.target is aten.eq.Scalar and isinstance(args[0], fx.Node) and isinstance(args[1], int):
        return {(args[0], args[1]): value}
    return {}
