"""``keys()``, ``values()`` and ``items()`` of a dict with data-dependent keys: what is in it when they are looked at.

Methods are converted like the user's code, as in ``data_keys``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from dy2st.staging.containers.data_key_limits import converted, refuse, rows_in_order
from dy2st.staging.routes import AROUND
from dy2st.values.container_structure import Listed

AROUND.add(__file__)


class Viewed(Listed):
    """What stands for a dict: ``_all_keys`` and the others say what is in it."""

    @abc.abstractmethod
    def _all_keys(self) -> Any: ...

    @abc.abstractmethod
    def _all_values(self) -> Any: ...

    @abc.abstractmethod
    def _all_items(self) -> Any: ...

    @abc.abstractmethod
    def __len__(self) -> Any: ...

    @abc.abstractmethod
    def __setitem__(self, key: Any, value: Any) -> None: ...

    def keys(self) -> View:
        """As ``dict.keys``."""
        return View(self, self._all_keys, KEYS)

    def values(self) -> View:
        """As ``dict.values``."""
        return View(self, self._all_values, VALUES)

    def items(self) -> View:
        """As ``dict.items``."""
        return View(self, self._all_items, ITEMS)

    def update(self, other: Any = (), **named: Any) -> None:
        """As ``dict.update``."""
        pairs = other.items() if hasattr(other, "items") else other
        for key, value in pairs:
            self[key] = value
        for name, value in named.items():
            self[name] = value


class View(Listed):
    """What ``keys``, ``values`` and ``items`` of a dict give: what is in the dict when it is looked at."""

    def __init__(self, owner: Viewed, look: Callable[[], Any], kind: type) -> None:
        self._owner = owner
        self._look = look
        self.kind = kind

    def listed(self) -> list[Any]:
        """What is there now."""
        return converted(self._look)

    def __len__(self) -> Any:
        return len(self._owner)

    def __contains__(self, item: Any) -> Any:
        return item in self._look()

    def __iter__(self) -> Any:
        return rows_in_order(self._look())

    def copy(self) -> Any:
        """A view has no copy."""
        raise AttributeError(f"'{self.kind.__name__}' object has no attribute 'copy'")

    def __repr__(self) -> str:
        refuse("the text", "print its length, or a tensor of its keys")


KEYS: type = type({}.keys())
VALUES: type = type({}.values())
ITEMS: type = type({}.items())
