"""Texts made of dynamic sizes: the text of a size is known only when the graph runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch

from dy2st.graph.places import OWN, is_users
from dy2st.graph.texts import UNKNOWN, UnknownText

METHODS = ("__repr__", "__str__", "__format__")


def _for_the_user() -> bool:
    """Whether the text is made by the user's code, not by torch for its own purposes."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return frame is not None and is_users(frame.f_code.co_filename)


def _told(native: Callable[..., str], kind: str) -> Callable[..., str]:
    def text(self: Any, *spec: str) -> str:
        if not isinstance(self.node.maybe_as_int(), int) and _for_the_user():
            return UnknownText(f"<{kind} {UNKNOWN}>")
        return native(self, *spec)

    return text


@contextlib.contextmanager
def unknown_texts() -> Iterator[None]:
    """In texts of the user's, a dynamic size stands as what it is: unknown. Torch's symbol would be taken for one."""
    kinds: list[tuple[type, str]] = [(torch.SymInt, "int"), (torch.SymFloat, "float"), (torch.SymBool, "bool")]
    before = [(owner, name, owner.__dict__.get(name)) for owner, _ in kinds for name in METHODS]
    for owner, kind in kinds:
        for name in METHODS:
            setattr(owner, name, _told(getattr(owner, name), kind))
    try:
        yield
    finally:
        for owner, name, native in before:
            if native is None:
                delattr(owner, name)
            else:
                setattr(owner, name, native)
