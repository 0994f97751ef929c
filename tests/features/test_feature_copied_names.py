"""What code says of itself and what it is: names that ``functools.wraps`` copies (row 40), and aliases of classes."""

from __future__ import annotations

import functools
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from harness import agree, both_signs, dyn, row
from torch import Tensor
from torch.nn import functional

Held = TypeVar("Held")


@functools.wraps(functional.relu)
def doubled_or_not(x: Tensor) -> Tensor:
    """It says that it is torch's."""
    if x.sum() > 0:
        return functional.relu(x) * 2
    return -x


@functools.wraps(np.clip)
def clipped(x: Tensor) -> Tensor:
    """It says that it is numpy's."""
    while x.abs().max() > 1:
        x = x / 2
    return x


class Backend:
    """Functions that are looked up when they are called, each with the name of what it may be."""

    chosen: Any = torch

    @classmethod
    def dispatched(cls, name: str) -> Any:
        def call(*args: Any) -> Any:
            return getattr(cls.chosen, name)(*args)

        call.__module__, call.__name__ = "numpy", name
        call.__wrapped__ = getattr(np, name)  # type: ignore[attr-defined]
        return staticmethod(call)


Backend.where = Backend.dispatched("where")  # type: ignore[attr-defined]
Backend.clip = Backend.dispatched("clip")  # type: ignore[attr-defined]


@row(40)
def test_functions_with_copied_names() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        backend: Any = Backend
        return doubled_or_not(x), clipped(x), backend.where(x > 0, x, -x), backend.clip(clipped(x), 0.0, 0.5)

    agree(model, both_signs(3, 1, 4), (dyn(0),))


class Box(Generic[Held]):
    """An object that a condition fills."""

    def __init__(self, value: Tensor) -> None:
        if value.sum() > 0:
            self.value = value * 2
        else:
            self.value = -value

    def kept(self) -> Any:
        return getattr(self, "__orig_class__", None)


@row(40)
def test_classes_called_through_an_alias() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        box = Box[Tensor](x)
        made = list[int]((3, 4))
        return box.value, x + 1 if box.kept() == Box[Tensor] else x, x + made[1]

    agree(model, both_signs(3, 1, 4), (dyn(0),))
