"""Stores to attributes, items, globals and closures; loads that may need care."""

from __future__ import annotations

import re
from typing import Any

from dy2st.operators.mode import MODE

# The names that passes generate: never shown by locals(), vars() or dir().
GENERATED = re.compile(r"d2s_*\Z|(?:if|loop|fn|gen|try|and|or|value|subject|target)_\d+(?:_\d+)?\Z")


def target(owner: Any) -> Any:
    """The object whose attribute or item is stored to or deleted."""
    return owner if MODE.capture is None else MODE.capture.target(owner)


def item(owner: Any) -> Any:
    """The object that is subscripted."""
    return owner if MODE.capture is None else MODE.capture.item(owner)


def subject(value: Any, classes: bool = False) -> Any:
    """The subject of a ``match`` on structure; ``classes``: its patterns name classes, True or False."""
    return value if MODE.capture is None else MODE.capture.subject(value, classes=classes)


def formatted(text: Any, values: Any) -> Any:
    """``text % values``."""
    return text % values if MODE.capture is None else MODE.capture.formatted(text, values)


def text(value: Any) -> Any:
    """A text that was put together from values."""
    return value if MODE.capture is None else MODE.capture.text(value)


def new(container: Any) -> Any:
    """A list, dict or set that was made on the spot."""
    return container if MODE.capture is None else MODE.capture.displayed(container)


def unpacked(value: Any) -> Any:
    """What is unpacked into targets one of which is starred."""
    return value if MODE.capture is None else MODE.capture.unpacked(value)


def read(value: Any, name: str) -> Any:
    """A load of a variable that may have no value on some staged path."""
    return value if MODE.capture is None else MODE.capture.read(value, name)


def touch(owner: Any) -> None:
    """An augmented assignment follows, which changes a container in place."""
    if MODE.capture is not None:
        MODE.capture.touch_content(owner)


def touch_global(name: str, namespace: dict[str, Any]) -> None:
    """A store to a global follows."""
    if MODE.capture is not None:
        MODE.capture.touch_global(name, namespace)


def touch_nonlocal(reader: Any) -> None:
    """A store to a variable of an enclosing function follows; ``reader`` closes over it."""
    if MODE.capture is not None:
        MODE.capture.touch_nonlocal(reader)


def visible(names: Any) -> Any:
    """``locals()``, ``vars()`` or ``dir()`` without the names that the rewriting added."""
    if isinstance(names, dict):
        return {k: v for k, v in names.items() if not GENERATED.match(k)}
    return [n for n in names if not GENERATED.match(n)]
