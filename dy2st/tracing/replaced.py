"""Attributes of torch's classes, modules and objects that are others for a while, and dispatch modes that are off."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

# Outside the modes that are active: of a trace, or of who counts a model's operators, or disturbs them.
from torch.utils._python_dispatch import _disable_current_modes as without_modes

__all__ = ["NOTHING", "replaced", "without_modes"]
NOTHING: Any = object()


@contextlib.contextmanager
def replaced(attributes: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    """Give each owner its attribute of that name; what it had of its own, or nothing, comes back at the end."""
    given = list(attributes)
    before = [(owner, name, vars(owner).get(name, NOTHING)) for owner, name, _ in given]
    for owner, name, value in given:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, native in before:
            if native is NOTHING:
                delattr(owner, name)
            else:
                setattr(owner, name, native)
