"""Objects that stand for a container of Python's, and keep what is in it as a list."""

from __future__ import annotations

import abc
from typing import Any


class Listed(abc.ABC):
    """Iterated over, it is its list."""

    @abc.abstractmethod
    def listed(self) -> list[Any]:
        """The elements in their order, among them perhaps rows of the graph."""
