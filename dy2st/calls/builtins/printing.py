"""What is printed, logged or put in a text under a capture, where a part of it is known only when the graph runs."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.calls.builtins.overloads import STAND_INS, elements, is_staged, knows_cases, stands_for
from dy2st.errors import LeakedValueError
from dy2st.operators.export_session import current
from dy2st.staging.session import MODE
from dy2st.values.number import Number
from dy2st.values.staged_text import UNKNOWN, TextParts, characters, is_unknown, text, without_numbers
from dy2st.values.tagged_union import TaggedUnion, text_by_case
from dy2st.values.undefined import Undefined


@stands_for(print)
@knows_cases
def _print(*args: Any, **kwargs: Any) -> None:
    staged = any(is_staged(a) or mentions(a) for a in args)
    file = kwargs.get("file")
    if isinstance(file, io.StringIO) and file is not sys.stdout and MODE.capture is not None:
        if staged:
            raise LeakedValueError(
                "print() writes a data-dependent value to a StringIO",
                hint="put the value in a list, or return it",
            )
        MODE.capture.refuse_change(file, "print()")
    if not staged:
        print(*args, **kwargs)  # noqa: T201  # what the user's print() does


def mentions(value: Any) -> bool:
    """A string formatted from a staged value."""
    return isinstance(value, str) and (is_unknown(value) or "FakeTensor" in value)


def _quiet(original: Callable[..., Any]) -> Callable[..., Any]:
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        # Under a tensor condition it is data-dependent whether anything is to be said.
        conditional = MODE.capture is not None and MODE.capture.conditional
        silent = conditional or any(is_staged(a) or mentions(a) for a in args)
        if silent:
            return None
        # The line that is named is the caller's, behind this one.
        if original is not warnings.warn or len(args) < 3:
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        else:
            args = (*args[:2], args[2] + 1, *args[3:])
        return original(*args, **kwargs)

    return stand_in


for _function in (warnings.warn, logging.debug, logging.info, logging.warning, logging.error):
    STAND_INS[_function] = _quiet(_function)


@stands_for(str)
def _str(*args: Any, **kwargs: Any) -> Any:
    return text(str(*args, **kwargs))


@stands_for(repr)
def _repr(value: Any) -> Any:
    return text(repr(value))


@stands_for(format)
def _format(value: Any, spec: str = "") -> Any:
    return text_by_case(format(value, characters(spec)))


class _Unknown:
    """Stands in a text for what is known only when the graph runs."""

    def __format__(self, spec: str) -> str:
        return f"<{UNKNOWN}>"

    def __repr__(self) -> str:
        return f"<{UNKNOWN}>"


# What says of itself what it is in a text, for a program that says it.
_WITH_TEXTS = (Number, torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)


def _in_a_text(leaf: Any) -> Any:
    if isinstance(leaf, TaggedUnion) or (current().part(TextParts).wanted and isinstance(leaf, _WITH_TEXTS)):
        return leaf
    return _Unknown() if is_staged(leaf) else leaf


def write_method(method: Callable[[str], int]) -> Callable[[str], Any]:
    """``write`` of a stream: as by ``print``, what is staged is not written; how much that was is not known."""

    def call(written: str) -> Any:
        if not is_unknown(written):
            return method(written)
        return Undefined(
            "the number of characters that write() gives",
            "the text that is written is known only when the graph runs",
            "compute with the value itself",
        )

    return call


def text_method(method: Callable[..., str]) -> Callable[..., str]:
    """``str.format`` and its kind with staged arguments."""
    formats = method.__name__ in ("format", "format_map")

    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(elements(a) for a in args)
        given, kwargs = pytree.tree_map(_in_a_text, (args, kwargs))
        if not formats:  # what is joined has to be a text
            given = pytree.tree_map_only(TaggedUnion, format, given)
        made = method(*given, **kwargs)
        # What a template fills up or cuts has to be known.
        return text_by_case(without_numbers(made) if method.__name__ == "__mod__" else made)

    return call
