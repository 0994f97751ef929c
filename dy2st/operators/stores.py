"""Stores to attributes, items, globals and closures; loads that may need care."""

from __future__ import annotations

import re
from typing import Any

from dy2st.operators.export_session import current

# The names that passes generate: never shown by locals(), vars() or dir().
GENERATED = re.compile(r"d2s_*\Z|(?:if|loop|fn|gen|try|and|or|value|subject|target)_\d+(?:_\d+)?\Z")


def target(owner: Any) -> Any:
    """The object whose attribute or item is stored to or deleted."""
    return owner if (capture := current().capture) is None else capture.target(owner)


def item(owner: Any) -> Any:
    """The object that is subscripted."""
    return owner if (capture := current().capture) is None else capture.item(owner)


def subject(value: Any, classes: bool = False) -> Any:
    """The subject of a ``match`` on structure; ``classes``: its patterns name classes, True or False."""
    return value if (capture := current().capture) is None else capture.subject(value, classes=classes)


def formatted(text: Any, values: Any) -> Any:
    """``text % values``."""
    return text % values if (capture := current().capture) is None else capture.formatted(text, values)


def text(value: Any) -> Any:
    """A text that was put together from values."""
    return value if (capture := current().capture) is None else capture.text(value)


def new(container: Any) -> Any:
    """A list, dict or set that was made on the spot."""
    return container if (capture := current().capture) is None else capture.displayed(container)


def dict_of(pairs: list[tuple[Any, Any]]) -> Any:
    """A dict that was made on the spot, of these pairs."""
    return dict(pairs) if (capture := current().capture) is None else capture.mapped(pairs)


def set_of(members: list[Any]) -> Any:
    """A set that was made on the spot, of these members."""
    return set(members) if (capture := current().capture) is None else capture.gathered(members)


def spread(value: Any) -> Any:
    """What a display takes all elements of."""
    return value if (capture := current().capture) is None else capture.spread(value)


def first(generator: Any, *default: Any) -> Any:
    """``next`` of a generator expression, which nobody else has."""
    capture = current().capture
    return next(generator, *default) if capture is None else capture.first(generator, *default)


def unpacked(value: Any, *targets: Any) -> Any:
    """What is unpacked into several targets: how many before one with a star, how many behind it, those in brackets."""
    return value if (capture := current().capture) is None else capture.unpacked(value, *targets)


def read(value: Any, name: str) -> Any:
    """A load of a variable that may have no value on some staged path."""
    return value if (capture := current().capture) is None else capture.read(value, name)


def added(owner: Any, value: Any) -> Any:
    """What ``owner += value`` adds: it changes a list in place, and of a tensor it takes the rows."""
    return value if (capture := current().capture) is None else capture.added(owner, value)


def touch(owner: Any) -> None:
    """An augmented assignment follows, which changes a container in place."""
    if (capture := current().capture) is not None:
        capture.touch_content(owner)


def touch_global(name: str, namespace: dict[str, Any]) -> None:
    """A store to a global follows."""
    if (capture := current().capture) is not None:
        capture.touch_global(name, namespace)


def touch_nonlocal(reader: Any) -> None:
    """A store to a variable of an enclosing function follows; ``reader`` closes over it."""
    if (capture := current().capture) is not None:
        capture.touch_nonlocal(reader)


def visible(names: Any) -> Any:
    """``locals()``, ``vars()`` or ``dir()`` without the names that the rewriting added."""
    if isinstance(names, dict):
        return {k: v for k, v in names.items() if not GENERATED.match(k)}
    return [n for n in names if not GENERATED.match(n)]
