"""Gradients of random programs: those of a static model are eager's, of its inputs and of its parameters."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any

import harness
import torch
from torch.utils import _pytree as pytree

import dy2st


def derivatives(model: Callable[..., Any], given: Any) -> list[torch.Tensor | None] | None:
    """By each float that comes in and each parameter, of a weighted sum of all floats that come out; None without any.

    What comes in is no leaf, so that it may be written to.
    """
    args, kwargs = harness.split(given)
    leaves, spec = pytree.tree_flatten((args, kwargs))
    inputs = [each.requires_grad_() for each in leaves if _is_real(each)]
    args, kwargs = pytree.tree_unflatten([each * 1 if _is_real(each) else each for each in leaves], spec)
    outputs = [each for each in pytree.tree_leaves(model(*args, **kwargs)) if _is_real(each) and each.requires_grad]
    if not outputs:
        return None
    total = sum((each.double() * torch.arange(1, each.numel() + 1).view(each.shape)).sum() for each in outputs)
    parameters = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    return list(torch.autograd.grad(total, [*inputs, *parameters], allow_unused=True))  # type: ignore[arg-type]


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def compare_gradients(module: ModuleType, usable: list[Any]) -> None:
    """Compare those of each input that eager can differentiate.

    Raises:
        AssertionError: they differ.
        Dy2stError: the static model refuses it.
    """
    for given in usable:
        expected: list[torch.Tensor | None] | None = None
        with contextlib.suppress(Exception):  # a view that is written to, a number that wants no gradient
            expected = derivatives(copy.deepcopy(module.model), given)
        if expected is None or all(each is None for each in expected):  # a view that is made under no_grad
            continue
        where = f"gradients, {harness.shapes(given)}"
        actual = derivatives(dy2st.to_static(copy.deepcopy(module.model)), given)
        assert actual is not None, f"{where}: no result wants any"
        for i, (want, got) in enumerate(zip(expected, actual, strict=True)):
            if want is None:  # a choice of two values by torch.where has a gradient, zero, of the one that is not taken
                assert got is None or not got.any(), f"{where}: {i} is {got} instead of {want}"
            else:
                assert got is not None, f"{where}: {i} is None instead of {want}"
                harness.compare_leaf(want, got, f"{where}, {i}")
