"""Methods of classes that stand for torch's own for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any


@contextlib.contextmanager
def replaced(methods: Iterable[tuple[type, str, Callable[..., Any]]]) -> Iterator[None]:
    """Give each class its method of that name; what was there, or nothing, comes back at the end."""
    given = list(methods)
    before = [(owner, name, vars(owner).get(name)) for owner, name, _ in given]
    for owner, name, method in given:
        setattr(owner, name, method)
    try:
        yield
    finally:
        for owner, name, native in before:
            if native is None:
                delattr(owner, name)
            else:
                setattr(owner, name, native)
