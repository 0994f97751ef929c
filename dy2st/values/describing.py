"""How messages name variables and values, and say how two values differ."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import torch

from dy2st.errors import Dy2stError
from dy2st.values.container_structure import Listed
from dy2st.values.error_recovery import SHOWN, RecoveryValue
from dy2st.values.journal import DefaultDict
from dy2st.values.number import DTYPES, number_kind
from dy2st.values.sparse_tensor import SparseTensor
from dy2st.values.staged_text import text_of
from dy2st.values.tagged_union import TaggedUnion, cases_of
from dy2st.values.undefined import UNSET, Undefined

# How many characters of a Python value, and how many keys of a dict, a message shows.
LONGEST, MOST_KEYS = 40, 6
# How long a line of another's message may be.
LONGEST_LINE = 120


def article(words: str) -> str:
    """``words`` with "a" or "an" before them."""
    return f"{'an' if words[:1].lower() in 'aeio' else 'a'} {words}"


def describe(value: Any) -> str:
    """A value's type, and a tensor's dtype and shape, for a message."""
    if isinstance(value, TaggedUnion):
        return " or ".join(dict.fromkeys(map(describe, cases_of(value))))
    if isinstance(value, torch.Tensor):
        if isinstance(value, SparseTensor):
            return f"a sparse {str(value.dtype).removeprefix('torch.')}{sizes(value)} tensor"
        return article(f"{str(value.dtype).removeprefix('torch.')}{sizes(value)} tensor")
    kind = number_kind(value)
    if kind is not None:
        return f"the {kind.__name__} {value}" if type(value) in DTYPES else f"a changing {kind.__name__}"
    if value is None:
        return "None"
    if value is UNSET or isinstance(value, Undefined):
        return SHOWN if isinstance(value, RecoveryValue) else "no value"
    if isinstance(value, (str, bytes)):
        return f"the {type(value).__name__} {shortened(text_of(value))}"
    if isinstance(value, Listed):
        return f"{article(value.kind.__name__)} with data-dependent keys"
    return article(type(value).__name__)


def alternatives(values: Sequence[Any]) -> str:
    """``a, b or c``: values of which each is told from those that are described alike."""
    words: list[str] = []
    for i, value in enumerate(values):
        twins = [j for j, other in enumerate(values) if j != i and describe(other) == describe(value)]
        if not twins:
            words.append(describe(value))
        else:
            words.append(sides(values[twins[0]], value)[1] if twins[0] < i else sides(value, values[twins[0]])[0])
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else f"one or another of {last}"


def sizes(tensor: torch.Tensor) -> str:
    """A tensor's sizes in brackets, ``?`` for one that the inputs decide."""
    return f"[{', '.join(str(size) if type(size) is int else '?' for size in tensor.shape)}]"


def shortened(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def sides(a: Any, b: Any) -> tuple[str, str]:
    """Two values that differ, each so that the difference shows."""
    first, second = describe(a), describe(b)
    if type(a) is not type(b) or first != second:
        return first, second
    if isinstance(a, dict):
        return _keys(a, b), _keys(b, a)
    if isinstance(a, (set, frozenset)):
        return _members(a, b), _members(b, a)
    if hasattr(a, "__len__") and not isinstance(a, torch.Tensor) and len(a) != len(b):
        return f"{first} of length {len(a)}", f"{second} of length {len(b)}"
    kind = "sparse tensor" if isinstance(a, SparseTensor) else type(a).__name__
    if isinstance(a, SparseTensor) or dataclasses.is_dataclass(a) or " at 0x" in _text(a):
        return f"one {kind}", f"another {kind}"
    shown = shortened(_text(a)), shortened(_text(b))
    return shown if shown[0] != shown[1] else (f"one {kind}", f"another {kind}")


def _text(value: Any) -> str:
    """A value's text; that of a method has its object's, which there may be none of, or none that is known."""
    try:
        text = repr(value)
    except Dy2stError:
        return " at 0x"
    return text if type(text) is str else " at 0x"


def _keys(value: dict[Any, Any], other: dict[Any, Any]) -> str:
    kind = "a dict" if isinstance(value, DefaultDict) else article(type(value).__name__)
    if not value:
        return f"{kind} without keys"
    keys = list(map(repr, value))
    if len(keys) > MOST_KEYS:
        # Of many keys only those that the other one has not.
        keys = [repr(key) for key in value if key not in other]
        if not keys:
            return f"{kind} with {len(value)} keys"
    return f"{kind} with the key{'s' if len(keys) > 1 else ''} {', '.join(keys[:MOST_KEYS])}"


def _members(value: Any, other: Any) -> str:
    if not value:
        return "an empty set"
    # Of many members only those that the other one has not.
    own = sorted(map(repr, value if len(value) <= MOST_KEYS else value - other))
    return f"a set of {', '.join(own[:MOST_KEYS]) or f'{len(value)} members'}"


def shown(key: Any) -> str:
    """How a message names a variable, a slot or a returned value."""
    if isinstance(key, tuple):
        return "the returned value" if "return" in map(str, _flat(key)) else str(key[0])
    return str(key)


def _flat(key: Any) -> list[Any]:
    return [part for inner in key for part in _flat(inner)] if isinstance(key, tuple) else [key]


def one_line(error: BaseException) -> str:
    """An exception's type and the first line of its text; the stand-ins of a trace are tensors to the user."""
    text = next(iter(str(error).splitlines()), "").replace("'FakeTensor'", "'Tensor'")
    # torch explains at length; its first sentence says what it is about.
    sentence = re.match(r".{30,}?(?<!e\.g)(?<!i\.e)[.!](?=\s+[A-Z])", text)
    return f"{type(error).__name__}: {sentence[0] if sentence and len(text) > LONGEST_LINE else text}".rstrip(": ")
