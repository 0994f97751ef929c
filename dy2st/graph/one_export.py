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
