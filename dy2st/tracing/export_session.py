"""What is found out about a model while it is exported, and is forgotten afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class OneExport:
    """State that each export begins anew, as its ``__init__`` makes it; an export inside another one has its own."""

    @contextlib.contextmanager
    def of_one_export(self) -> Iterator[None]:
        """While a model is exported."""
        before = vars(self).copy()
        self.__init__()  # type: ignore[misc]
        try:
            yield
        finally:
            vars(self).update(before)


class OtherWay(OneExport):
    """Something that can be captured in two ways, of which the first is better where it can be.

    ``met``: the first way has been taken. ``taken``: the other one is to be taken, for a program that is refused else.
    """

    def __init__(self) -> None:
        self.met = False
        self.taken = False
