"""The classes of the objects that code may use without calling anything: their properties and operators are converted.

``self.config.scale`` runs a property, ``a + b`` a special method, and Python itself calls both.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch

from dy2st.values.plain_objects import attributes_of

# How deep objects and containers are searched, and for how many.
MOST_LEVELS = 4
MOST_OBJECTS = 10_000
WITHOUT_PARTS = (
    torch.Tensor,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    type,
    str,
    bytes,
    int,
    float,
)


def convert_classes_of(capture: Any, owner: Any) -> None:
    """Convert the classes of an object and of what it holds."""
    if id(owner) in capture.looked_through:
        return
    capture.looked_through[id(owner)] = owner
    for cls in _classes_held(owner):
        capture.convert_class(cls)


def convert_classes_around(capture: Any, function: types.FunctionType) -> None:
    """Convert the classes of the objects that a function finds in its closure and among its globals."""
    code = function.__code__
    if id(code) in capture.looked_through:
        return
    capture.looked_through[id(code)] = code
    for cell in function.__closure__ or ():
        try:
            convert_classes_of(capture, cell.cell_contents)
        except ValueError:  # without content yet
            continue
    for name in code.co_names:
        if name in function.__globals__:
            convert_classes_of(capture, function.__globals__[name])


def _classes_held(owner: Any) -> Iterator[type]:
    seen: set[int] = set()
    left = [(owner, 0)]
    while left and len(seen) < MOST_OBJECTS:
        value, level = left.pop()
        if id(value) in seen or value is None or isinstance(value, WITHOUT_PARTS):
            continue
        seen.add(id(value))
        parts: list[Any] = []
        if isinstance(value, dict):
            parts += value.values()
        elif isinstance(value, (list, tuple, set, frozenset)):
            parts += value
        if type(value).__module__ != "builtins":
            yield type(value)
            parts += attributes_of(value).values()
        if level < MOST_LEVELS:
            left += [(part, level + 1) for part in parts]
