"""Texts made of dynamic sizes: the text of a size is known only when the graph runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dy2st.tracing.method_patches import replaced
from dy2st.values.staged_text import UNKNOWN, asked_by_the_user, text

METHODS = ("__repr__", "__str__", "__format__")


def _told(native: Callable[..., str], kind: str) -> Callable[..., str]:
    def told(self: Any, *spec: str) -> str:
        if not isinstance(self.node.maybe_as_int(), int) and asked_by_the_user():
            return str(text(f"<{kind} {UNKNOWN}>"))
        return native(self, *spec)

    return told


@contextlib.contextmanager
def unknown_texts() -> Iterator[None]:
    """In texts of the user's, a dynamic size stands as what it is: unknown. Torch's symbol would be taken for one."""
    kinds: list[tuple[type, str]] = [(torch.SymInt, "int"), (torch.SymFloat, "float"), (torch.SymBool, "bool")]
    with replaced((owner, name, _told(getattr(owner, name), kind)) for owner, kind in kinds for name in METHODS):
        yield
