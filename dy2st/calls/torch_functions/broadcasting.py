"""Sizes that are none or one, beside sizes that are known to be more: ``x[-1:] * torch.ones(4)``.

Eager repeats the one and raises for none, and torch, which asks which of the two it is, gets no answer. So the first
element is taken, which the graph can't if there is none.

Source: "Broadcasting semantics" of torch's documentation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import Max, Min

from dy2st.staging.session import MODE
from dy2st.values.number_arguments import ELEMENTWISE

# Functions whose tensors are broadcast to one shape: of those that take numbers as operands all but two.
TOGETHER = ELEMENTWISE - {"quantile", "nanquantile"} | frozenset("addcdiv addcdiv_ broadcast_tensors isclose".split())
# Those that name the shape.
_TO_SHAPE = frozenset("expand broadcast_to".split())
_VIEWING = _TO_SHAPE | {"expand_as", "broadcast_tensors"}
_BROADCASTING = TOGETHER | _VIEWING
# What is linear between few places.
_LINEAR = (sympy.Add, sympy.Mul, sympy.Min, sympy.Max, Min, Max)
_MOST, _MOST_NODES = 2, 24
# Places lie where two sums of at most so many small numbers are equal.
_BEYOND = 2 * _MOST * _MOST_NODES + 2


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
            leaves[i] = _settled(leaf, together, copies=name not in _VIEWING)
    changed: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_unflatten(leaves, spec)
    return changed


def _settled(tensor: torch.Tensor, together: Sequence[tuple[Any, ...]], *, copies: bool) -> torch.Tensor:
    """The tensor, with one element where it has none or one and another has more; ``together`` are the sizes that meet.

    Beside a size that may be none itself it is repeated as often: none of none is none. That is a copy, which may stand
    for an operand, and not for what a view is made of.
    """
    sizes: list[Any] = list(tensor.shape)
    for i, size in enumerate(reversed(sizes)):
        if not is_none_or_one(size):
            continue
        dim, others = tensor.dim() - 1 - i, together[i]
        if any(isinstance(other, int) and other > 1 for other in others):
            tensor = torch.select(tensor, dim, 0).unsqueeze(dim)
            continue
        whole = next((other for other in others if _is_cut(size, other)), None)
        if whole is not None and copies:
            tensor = tensor.index_select(dim, torch.zeros(whole, dtype=torch.int64, device=tensor.device))
    return tensor


def _aligned(shapes: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """The sizes that meet, from the last dimension on."""
    return itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)


def is_none_or_one(size: Any) -> bool:
    """Whether a size is none or one, and which of them is known only when the graph runs."""
    if not isinstance(size, torch.SymInt):
        return False
    node = size.node
    return bool(node.shape_env.bound_sympy(node.expr).upper <= 1) or _proved(
        node.expr, lambda found, _: found in (0, 1)
    )


def _is_cut(size: torch.SymInt, whole: Any) -> bool:
    """Whether a size of the arguments is another one, cut to one element; that may always be none."""
    if not isinstance(whole, torch.SymInt):
        return isinstance(whole, int) and whole == 0
    expr, other = size.node.expr, whole.node.expr
    if free_unbacked_symbols(other) or not other.is_Symbol or expr.free_symbols != {other}:
        return False
    return _proved(expr, lambda found, given: found == min(1, given))


def _proved(expr: sympy.Expr, holds: Callable[[int, int], bool]) -> bool:
    """Whether ``holds(value of expr, n)`` for all sizes n, the only symbol: that of ``x[:1]`` and ``x[-1:]``.

    Sums, least and greatest values of n and small numbers are linear between few places, all of which are tried, and
    beyond the last of them.
    """
    values = _values(expr)
    return values is not None and all(holds(value, n) for n, value in values)


@functools.lru_cache(maxsize=1024)
def _values(expr: sympy.Expr) -> list[tuple[int, int]] | None:
    """The values of an expression at so many sizes that they tell it; None of any other expression."""
    nodes = list(sympy.preorder_traversal(expr))
    numbers = [int(each) for each in nodes if each.is_Integer]
    linear = all(each.is_Integer or each.is_Symbol or isinstance(each, _LINEAR) for each in nodes)
    if not linear or len(expr.free_symbols) != 1 or len(nodes) > _MOST_NODES or any(abs(n) > _MOST for n in numbers):
        return None
    (symbol,) = expr.free_symbols
    products = [each.args for each in nodes if isinstance(each, sympy.Mul)]
    if any(len(factors) != 2 or factors[0] != -1 for factors in products):
        return None
    return [(n, int(expr.subs(symbol, n))) for n in (*range(_BEYOND), 10**6, 10**6 + 1)]
