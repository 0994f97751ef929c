"""Arguments that are no inputs of a program: objects, functions, modules, sets. A program holds for these alone."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.operators import call
from dy2st.static.parameters import signature_of
from dy2st.tracing.named_tuples import put_back

# What torch.export takes among the leaves of the arguments.
_INPUTS = (torch.Tensor, bool, int, float, str, type(None))


def without_given(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """``function`` and its arguments, those leaves replaced by None that can't be inputs; it puts them back.

    A method is given as the function that it is; the object that it is called on comes before the arguments.
    """
    # A pytree would make a plain tuple of the shape of a tensor.
    leaves, spec = pytree.tree_flatten((args, kwargs), is_leaf=lambda each: isinstance(each, torch.Size))
    given = {i: leaf for i, leaf in enumerate(leaves) if not _is_input(leaf)}
    if not given:
        return function, args, kwargs

    @functools.wraps(function)
    def with_given(*inner_args: Any, **inner_kwargs: Any) -> Any:
        owner = inner_args[: len(inner_args) - len(args)]
        taken = inner_args[len(owner) :], inner_kwargs
        whole = [given.get(i, leaf) for i, leaf in enumerate(pytree.tree_leaves(taken))]
        its_args, its_kwargs = put_back(taken, pytree.tree_unflatten(whole, spec), lambda _, leaf: leaf)
        return call(types.MethodType(function, *owner) if owner else function)(*its_args, **its_kwargs)

    with_given.__signature__ = signature_of(function)  # type: ignore[attr-defined]
    with_given.given = given  # type: ignore[attr-defined]  # who looks for what the code changes comes by them
    inputs = [None if i in given else leaf for i, leaf in enumerate(leaves)]
    return with_given, *pytree.tree_unflatten(inputs, spec)


def _is_input(leaf: Any) -> bool:
    """Whether torch.export takes a value: an int is one of 64 bits."""
    if type(leaf) is int:
        return -(2**63) <= leaf < 2**63
    return type(leaf) in _INPUTS or isinstance(leaf, torch.Tensor)
