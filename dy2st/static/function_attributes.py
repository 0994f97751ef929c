"""The attributes of a static function: those of the function that it was made from.

The code of a decorated function reads them by a name that is the static function by now: ``step.calls``. So what the
user sets is set on the function, where guards see it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dy2st.conversion import STATIC_OF

# What a static function has beside these.
_OWN = frozenset(
    (
        *("_function", "_options", "_owner", "_unbound", "_bound", "_programs", "_roots", "_parameters"),
        *("_sizes_of_specs", "_of_function", "_of_method", "__signature__", "__wrapped__", STATIC_OF),
    )
)


class AttributesOfFunction:
    """Of a static function; one that is bound has those of the one that is not, and its user sets none."""

    _native: Callable[[], Any]

    def __getattr__(self, name: str) -> Any:
        held = self.__dict__
        inner = held.get("_unbound", held.get("_function"))
        if inner is None or (name in _OWN and "_unbound" not in held):  # one that is being copied
            raise AttributeError(name)
        return getattr(inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        told = name in functools.WRAPPER_ASSIGNMENTS
        own = name in _OWN or (hasattr(type(self), name) and not told)
        if own or told:
            object.__setattr__(self, name, value)
        if not own and hasattr(self, STATIC_OF):
            setattr(self._native(), name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN:
            object.__delattr__(self, name)
        else:
            delattr(self._native(), name)
