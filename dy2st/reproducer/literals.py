"""Inputs, weights and dynamic shapes as source text. What is too large for that is left to a file beside the script."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.export import Dim

from dy2st.errors import UsageError

# More numbers than these make no text that anyone reads.
MOST_NUMBERS = 200


class Literals:
    """Writes values as expressions; ``saved`` has the tensors that an expression takes from the dict ``name``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.saved: dict[str, torch.Tensor] = {}

    def text(self, value: Any, key: str) -> str:
        """An expression for a value; ``key`` names its tensors in the file, if they go there.

        Raises:
            UsageError: it is of a type that has no such form.
        """
        if isinstance(value, torch.Tensor):
            return self._tensor(value.detach().cpu(), key)
        if type(value) is float:
            return _float(value)
        if value is None or type(value) in (bool, int, str, bytes):
            return repr(value)
        if isinstance(value, torch.dtype):
            return str(value)
        if type(value) in (tuple, list, set) and (value or type(value) is not set):
            inner = [self.text(each, f"{key}_{place}") for place, each in enumerate(value)]
            if type(value) is tuple:
                return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"
            return f"[{', '.join(inner)}]" if type(value) is list else f"{{{', '.join(inner)}}}"
        if type(value) is dict:
            pairs = (f"{self.text(k, key)}: {self.text(each, f'{key}_{k}')}" for k, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        raise UsageError(f"{key} is of type {type(value).__name__}, which a script has no text for")

    def _tensor(self, value: torch.Tensor, key: str) -> str:
        dtype = "" if value.dtype is torch.float32 else f", dtype={value.dtype}"
        shape = list(value.shape)
        if not value.numel():
            return f"torch.zeros({shape}{dtype})"
        first = value.flatten()[0]
        if value.numel() > 1 and bool((value == first).all()):
            if first == 0:
                return f"torch.zeros({shape}{dtype})"
            return f"torch.full({shape}, {_number(first)}{dtype or ', dtype=torch.float32'})"
        if value.numel() > MOST_NUMBERS:
            self.saved[key] = value.clone()
            return f"{self.name}[{key!r}]"
        return f"torch.tensor({_nested(value)}{dtype or ', dtype=torch.float32'})"


def _nested(value: torch.Tensor) -> str:
    return f"[{', '.join(map(_nested, value))}]" if value.dim() else _number(value)


def _number(value: torch.Tensor) -> str:
    if value.dtype is torch.float32 and math.isfinite(float(value)):
        return str(np.float32(value.item()))  # as few digits as tell it from its neighbours
    item = value.item()
    return _float(item) if isinstance(item, float) else repr(item)


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def shapes_text(shapes: Any) -> str:
    """Dynamic shapes, as ``torch.export.export`` takes them, as an expression.

    Raises:
        UsageError: something in them has no such form.
    """
    if shapes is None or type(shapes) in (int, str):
        return repr(shapes)
    if type(shapes) in (tuple, list):
        inner = ", ".join(map(shapes_text, shapes))
        return f"[{inner}]" if type(shapes) is list else f"({inner},)" if shapes else "()"
    if isinstance(shapes, dict):
        return f"{{{', '.join(f'{key!r}: {shapes_text(each)}' for key, each in shapes.items())}}}"
    for hint in ("AUTO", "DYNAMIC", "STATIC"):
        if shapes is getattr(Dim, hint):
            return f"torch.export.Dim.{hint}"
    if isinstance(shapes, Dim):
        bounds = (("min", shapes.min), ("max", shapes.max))  # a bound that is none is no int
        given = "".join(f", {name}={bound}" for name, bound in bounds if type(bound) is int and bound != 0)
        return f"torch.export.Dim({shapes.__name__!r}{given})"
    raise UsageError(f"the dynamic shapes have a {type(shapes).__name__}, which a script has no text for")
