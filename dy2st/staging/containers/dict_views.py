"""``keys()``, ``values()`` and ``items()`` of a dict with data-dependent keys: what is in it when they are looked at.

Methods are converted like the user's code, as in ``data_keys``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.staging.containers.data_key_limits import converted, refuse, rows_in_order
from dy2st.staging.routes import AROUND
from dy2st.values.container_structure import Listed

AROUND.add(__file__)


class View(Listed):
    """What ``keys``, ``values`` and ``items`` of a dict give: what is in the dict when it is looked at."""

    def __init__(self, look: Callable[[], Any], keys: Any, kind: type) -> None:
        self._look = look
        self._keys = keys
        self.kind = kind

    def listed(self) -> list[Any]:
        """What is there now."""
        return converted(self._look)

    def __len__(self) -> Any:
        return len(self._keys)

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
