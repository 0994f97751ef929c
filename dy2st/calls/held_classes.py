"""The classes of the objects that code may use without calling anything: their properties and operators are converted.

``self.config.scale`` runs a property, ``a + b`` a special method, and Python itself calls both.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch

from dy2st.staging.memory.heap import attributes, elements, is_filled, is_machinery, walk

_WITHOUT_PARTS = (torch.Tensor, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def convert_classes_of(capture: Any, owner: Any, *, called: str = "") -> None:
    """Convert the classes of an object and of what it holds; ``called`` is its name for a message."""
    if id(owner) in capture.looked_through:
        return
    capture.looked_through[id(owner)] = owner
    for cls in _classes_held(capture, owner, called):
        capture.convert_class(cls)


def convert_classes_around(capture: Any, function: types.FunctionType) -> None:
    """Convert the classes of the objects that a function finds in its closure and among its globals."""
    code = function.__code__
    if id(code) in capture.looked_through:
        return
    capture.looked_through[id(code)] = code
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if is_filled(cell):
            convert_classes_of(capture, cell.cell_contents, called=repr(name))
    for name in code.co_names:
        if name in function.__globals__:
            convert_classes_of(capture, function.__globals__[name], called=repr(name))


def _classes_held(capture: Any, owner: Any, called: str) -> Iterator[type]:
    def is_end(value: Any) -> bool:
        # From an object that was looked through before, all is.
        known = value is not owner and id(value) in capture.looked_through
        return known or isinstance(value, _WITHOUT_PARTS) or is_machinery(value)

    for value in walk([owner], (attributes, elements), is_end, called=called):
        if type(value).__module__ != "builtins" and not isinstance(value, _WITHOUT_PARTS):
            yield type(value)
