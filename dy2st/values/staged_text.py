"""Texts made of values that are known only when the graph runs.

Such a text may be printed, logged, put in an error or joined with others. It has no length, no characters and equals
nothing: what asks for these is refused, where a text of what is known at capture would be silently wrong.
"""

from __future__ import annotations

import dis
import functools
import re
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import StagedNumberError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import frames, is_ours, is_users_frame

# What stands in a text for a data-dependent value.
UNKNOWN = "known when the graph runs"
ASKS = (
    "eq ne lt le gt ge hash contains len iter getitem".split(),
    "casefold count encode endswith find index isalnum isalpha isascii isdecimal isdigit isidentifier islower "
    "isnumeric isprintable isspace istitle isupper partition removeprefix removesuffix replace rfind rindex "
    "rpartition rsplit split splitlines startswith translate".split(),
)
MAKES = (
    "add mod mul rmul".split(),
    "capitalize center expandtabs format format_map join ljust lower lstrip rjust rstrip strip swapcase title upper "
    "zfill".split(),
)


def _watched() -> bool:
    """Whether a capture runs; afterwards, in a traceback or a debugger, such texts are texts."""
    return current().capture is not None


def asked_by_the_user() -> bool:
    """Whether the innermost frame that is not ours runs the user's code, not torch's or the standard library's."""
    others = (frame for frame in frames(sys._getframe(1)) if not is_ours(frame.f_code.co_filename))
    asking = next(others, None)
    return asking is not None and is_users_frame(asking)


class TextParts:
    """How the unknown parts of texts are made when the program runs; a part of the session of an export.

    ``wanted`` is whether the program is to say such texts. A part is a function and its arguments.
    """

    def __init__(self) -> None:
        self.wanted = False
        self.made_by: list[tuple[Callable[..., str], tuple[Any, ...]]] = []


_PART = re.compile(rf"<[a-z]+ #(\d+), {UNKNOWN}>")


def unknown_part(what: str, function: Callable[..., str], *args: Any) -> str:
    """What stands in a text for ``function(*args)``, which is known when the program runs."""
    parts = current().part(TextParts)
    if not parts.wanted or _by_remainder():
        return str(text(f"<{what} {UNKNOWN}>"))
    # As they are now: the text stays what it is when a tensor is written to.
    parts.made_by.append((function, pytree.tree_map_only(torch.Tensor, torch.clone, args)))
    return str(text(f"<{what} #{len(parts.made_by) - 1}, {UNKNOWN}>"))


def parts_of(value: str) -> list[Any]:
    """The known texts in an unknown one, and between them what makes the others: a function and its arguments.

    Raises:
        ValueError: something in it is not known to be made by anything.
    """
    made_by, known = current().part(TextParts).made_by, re.split(_PART, str.__str__(value))
    if any("known when" in each.lower() or "FakeTensor" in each for each in known[::2]):
        raise ValueError
    return [made_by[int(each)] if i % 2 else each for i, each in enumerate(known)]


def _by_remainder() -> bool:
    """Whether the user's ``template % values`` is at work, which may fill the text up, or cut it, and does not say so.

    Of a literal template an operator of ours does that (``Capture.formatted``), which knows.
    """
    frame = next((frame for frame in frames(sys._getframe(1)) if not is_ours(frame.f_code.co_filename)), None)
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == _BINARY_OP


_BINARY_OP = dis.opmap["BINARY_OP"]


def without_numbers(value: str) -> str:
    """A text whose unknown parts are counted as characters, so that it can't be put together later."""
    return re.sub(_PART, f"<{UNKNOWN}>", value)


class UnknownText(str):
    """A text of which some characters are data-dependent."""

    __slots__ = ()

    def __str__(self) -> str:
        return UnknownText(without_numbers(self)) if _by_remainder() else self

    def __repr__(self) -> str:
        return UnknownText(super().__repr__())

    def __format__(self, spec: str) -> str:
        return UnknownText(without_numbers(self).__format__(spec) if spec else super().__format__(spec))

    def __radd__(self, other: str) -> str:
        return UnknownText(other.__add__(str.__str__(self)))


def text(value: Any) -> Any:
    """``value``; an UnknownText if it is a text in which something unknown stands."""
    return UnknownText(value) if _watched() and type(value) is str and UNKNOWN in value else value


@functools.cache
def unknown_kind(kind: type[str]) -> type[str]:
    """A class of texts, with what is refused of one in which something unknown stands."""
    return type(kind.__name__, (UnknownText, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def makes_unknown(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call makes an object of a class of texts, which adds nothing to that, of an unknown one."""
    texts = isinstance(function, type) and issubclass(function, str) and function is not str
    plain = texts and function.__new__ is str.__new__ and function.__init__ is object.__init__
    return plain and len(args) == 1 and isinstance(args[0], UnknownText)


def is_unknown(value: Any) -> bool:
    """Whether a value is a text in which something unknown stands."""
    return isinstance(text(value), UnknownText)


def characters(value: Any) -> Any:
    """``value``, which is about to be read character by character."""
    return iter(value) and value if is_unknown(value) else value


def text_of(value: Any) -> str:
    """``repr(value)`` for a message, or for a comparison of ours: two unknown texts that read alike do as one."""
    return str.__str__(repr(value))


def _refusing(name: str, what: str) -> Callable[..., Any]:
    native = getattr(str, name, None)

    def method(self: str, /, *args: Any, **kwargs: Any) -> Any:
        if not (_watched() and asked_by_the_user()):
            return NotImplemented if native is None else native(self, *args, **kwargs)
        raise StagedNumberError(
            f"{what} a text made from a value that is known only when the graph runs",
            hint="compute with the value itself: compare numbers, not their texts",
        )

    return method


def _making(name: str) -> Callable[..., Any]:
    native = getattr(str, name)

    def method(self: str, /, *args: Any, **kwargs: Any) -> Any:
        made = native(self, *args, **kwargs)
        return UnknownText(made if name in _PUT_TOGETHER else without_numbers(made))

    return method


_PUT_TOGETHER = frozenset("__add__ __mul__ __rmul__ join format format_map".split())


WORDS = {"eq": "a comparison of", "ne": "a comparison of", "hash": "a key, set member or attribute name that is"}
WORDS |= {"contains": "a search in", "len": "the length of", "iter": "the characters of", "getitem": "characters of"}
for _name in ASKS[0]:
    setattr(UnknownText, f"__{_name}__", _refusing(f"__{_name}__", WORDS.get(_name, "a comparison or conversion of")))
for _name in ASKS[1]:
    setattr(UnknownText, _name, _refusing(_name, f"{_name}() of"))
for _name in MAKES[0]:
    setattr(UnknownText, f"__{_name}__", _making(f"__{_name}__"))
for _name in MAKES[1]:
    setattr(UnknownText, _name, _making(_name))


class NumberedText(UnknownText):
    """A text of which only natural numbers are data-dependent, in digits: words are in it, or are not."""

    __slots__ = ()

    def __contains__(self, words: str, /) -> bool:  # type: ignore[override]
        known = str.split(self, UNKNOWN)
        found = any(words in part for part in known)
        return found if found or not any(map(str.isdigit, words)) else super().__contains__(words)
