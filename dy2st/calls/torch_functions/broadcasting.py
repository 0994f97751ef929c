"""Sizes that are none or one, beside sizes that are known to be more: ``x[-1:] * torch.ones(4)``.

Eager repeats the one and raises for none, and torch, which asks which of the two it is, gets no answer. So the first
element is taken, which the graph can't if there is none.

Source: "Broadcasting semantics" of torch's documentation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from dy2st.staging.session import MODE
from dy2st.values.number_arguments import ELEMENTWISE

# Functions whose tensors are broadcast to one shape, and those that name the shape.
_TOGETHER = ELEMENTWISE | frozenset("addcdiv addcdiv_ broadcast_tensors isclose logical_and logical_or".split())
_TO_SHAPE = frozenset("expand broadcast_to".split())
_TO_OTHER = frozenset(["expand_as"])
# Some sizes that a tensor may have: a length that is cut to one element is none or one for each.
_SOME = (0, 1, 2, 3, 5, 9, 64)


def with_ones(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of torch's function ``name``, of which each size that can only be one is."""
    if MODE.capture is None or name not in _BROADCASTING:
        return args, kwargs
    leaves, spec = pytree.tree_flatten((args, kwargs))
    shapes = [list(each.shape) if isinstance(each, torch.Tensor) else [] for each in leaves]
    if all(isinstance(size, int) for shape in shapes for size in shape):
        return args, kwargs
    if name in _TO_SHAPE:
        shapes.append([each if isinstance(each, int) else 1 for each in leaves[1:]])
    # What an operator writes to keeps its sizes.
    first = 1 if (name.endswith("_") and not name.startswith("__")) or name.startswith("__i") else 0
    together = list(_aligned(shapes))
    for i, leaf in enumerate(leaves):
        if i >= first and isinstance(leaf, torch.Tensor):
            leaves[i] = _settled(leaf, together)
    changed: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_unflatten(leaves, spec)
    return changed


def _settled(tensor: torch.Tensor, together: Sequence[tuple[Any, ...]]) -> torch.Tensor:
    """The tensor, with one element where it has none or one and another has more; ``together`` are the sizes that meet.

    Beside a size that may be none itself it is repeated as often: none of none is none.
    """
    sizes: list[Any] = list(tensor.shape)
    for i, size in enumerate(reversed(sizes)):
        if not isinstance(size, torch.SymInt) or not _is_none_or_one(size.node):
            continue
        dim, others = tensor.dim() - 1 - i, together[i]
        if any(isinstance(other, int) and other > 1 for other in others):
            tensor = torch.select(tensor, dim, 0).unsqueeze(dim)
            continue
        whole = next((other for other in others if _is_cut(size, other)), None)
        if whole is not None:
            tensor = tensor.index_select(dim, torch.zeros(whole, dtype=torch.int64))
    return tensor


_BROADCASTING = _TOGETHER | _TO_SHAPE | _TO_OTHER


def _aligned(shapes: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """The sizes that meet, from the last dimension on."""
    return itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)


def _is_none_or_one(node: Any) -> bool:
    """Whether a size is none or one, by what is known of it, or by trial."""
    return node.shape_env.bound_sympy(node.expr).upper <= 1 or _all_small(node.expr)


@functools.lru_cache(maxsize=1024)
def _all_small(expr: sympy.Expr) -> bool:
    return all(expr.subs(dict.fromkeys(expr.free_symbols, size)) in (0, 1) for size in _SOME)


def _is_cut(size: torch.SymInt, whole: Any) -> bool:
    """Whether a size of the arguments is another one, cut to one element; that may always be none."""
    if not isinstance(whole, torch.SymInt):
        return isinstance(whole, int) and whole == 0
    expr, other = size.node.expr, whole.node.expr
    if free_unbacked_symbols(other) or expr.free_symbols != other.free_symbols or not other.is_Symbol:
        return False
    return all(expr.subs(other, each) == min(1, each) for each in _SOME)
