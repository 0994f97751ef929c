"""What the structure of a container is: its children, and how to build one like it from others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from dy2st.graph.poison import UNSET


def open_container(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any], Any] | None:
    """A container's children, how to build one from others, and what must be equal for two to be joined."""
    kind = type(value)
    if kind is list:
        return list(value), list, (kind, len(value))
    if kind is tuple or kind is torch.Size:
        return list(value), tuple, (tuple, len(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(value), lambda children: kind(*children), (kind, len(value))
    if isinstance(value, dict) and kind.__init__ is dict.__init__:
        keys = list(value)
        return (
            list(value.values()),
            lambda children: kind(zip(keys, children, strict=True)),
            (kind, tuple(map(repr, keys))),
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value)]

        def build(children: list[Any]) -> Any:
            made = object.__new__(kind)
            for name, child in zip(names, children, strict=True):
                object.__setattr__(made, name, child)
            return made

        return [getattr(value, n, UNSET) for n in names], build, (kind, tuple(names))
    return None
