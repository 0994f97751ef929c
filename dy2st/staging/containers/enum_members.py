"""``Colour(number)``: the member of an enumeration with a value that is known only when the graph runs.

    kind = Kind(int(code))
    if kind is Kind.SPEECH:
        ...

Python looks the value up in a dict. Here the members are compared one by one: the result is one of them by path, and
their names, values and identities are known on each.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.staging.routes import AROUND

AROUND.add(__file__)
_PLAIN = (int, float, bool)


def has_plain_values(cls: Any) -> bool:
    """Whether a class is an enumeration of numbers, each of which is found by its value and by nothing else."""
    if not isinstance(cls, enum.EnumMeta) or issubclass(cls, enum.Flag) or type(cls) is not enum.EnumMeta:
        return False
    own = getattr(cls._missing_, "__func__", None) is not enum.Enum._missing_.__func__  # type: ignore[attr-defined]
    members: list[Any] = list(cls)
    return not own and all(isinstance(each.value, _PLAIN) for each in members)


def member_of(members: Sequence[Any], value: Any) -> Any:
    """The member with a value; it is converted."""
    for member in members:
        if value == member.value:
            return member
    raise ValueError("no member of the enumeration has this value")


def finder(call: Callable[[Any], Any], cls: Any, native: Callable[..., Any]) -> Callable[..., Any]:
    """What to call in place of such an enumeration; ``call`` converts a function, ``native`` is for what is known."""

    def find(*args: Any, **kwargs: Any) -> Any:
        value = kwargs.get("value", args[0] if args else None)
        plain = value is None or isinstance(value, (*_PLAIN, str)) or len(args) + len(kwargs) > 1
        return native(*args, **kwargs) if plain else call(member_of)(list(cls), value)

    return find
