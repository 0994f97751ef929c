"""Tensors in whose place eager has a Python number of a lower kind on some path: ``total = 0``, then ``+ x.sum()``.

Such a number goes on as a 0-d tensor of the other path's dtype, which is of the same value. Its dtype is another one,
and so may be that of what is made from it. What eager has is noted on the tensor, so that a result can be warned of.
Where whoever calls gets Python's numbers, one of the tensor's own kind (``0.0`` for a float32) is noted, too.

Source: torch's type promotion, by category (bool, int, float, complex).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import DifferentRanksError
from dy2st.operators.export_session import current
from dy2st.tracing.replaced import without_modes
from dy2st.values.number import DTYPES, Number, number_kind

NAME = "_dy2st_lower_kinds"
# What eager may have: a type of Python numbers, or the dtype of a tensor.
Kind = type | torch.dtype


class LowerKinds:
    """Whether there are notes in an export: one without any is not slowed down.

    ``exact``: whether a result that is a number in eager has to be one.
    """

    def __init__(self) -> None:
        self.any = False
        self.exact = False


def any_notes() -> bool:
    """Whether a tensor may have a note."""
    return current().part(LowerKinds).any


def lower_kinds(value: Any) -> frozenset[Kind]:
    """What eager has in place of a tensor on some paths; empty for most."""
    return getattr(value, NAME, frozenset()) if any_notes() and isinstance(value, torch.Tensor) else frozenset()


def note_lower_kinds(joined: torch.Tensor, *sides: Any) -> None:
    """What stands for ``sides``, each on its path, is of the highest kind among them."""
    found: set[Kind] = set()
    for side in sides:
        kind = number_kind(side)
        if kind is not None and is_other(kind, joined.dtype):
            found.add(kind)
        found |= lower_kinds(side)
    add_lower_kinds(joined, found)


def add_lower_kinds(tensor: torch.Tensor, kinds: Collection[Kind]) -> None:
    """Eager may have these in place of a tensor."""
    if kinds:
        current().part(LowerKinds).any = True
        setattr(tensor, NAME, frozenset((*lower_kinds(tensor), *kinds)))


def is_lower(kind: Kind, than: Kind) -> bool:
    """Whether promotion would make ``than`` of it."""
    return _category(kind) < _category(than)


def is_other(kind: Kind, than: torch.dtype) -> bool:
    """Whether whoever gets a tensor of a dtype can tell it from what eager has."""
    exact = current().part(LowerKinds).exact and isinstance(kind, type)
    return is_lower(kind, than) or (exact and _category(kind) == _category(than))


def note_made_from_lower(func: Any, args: Any, kwargs: Any, result: Any) -> None:
    """Where a torch function is given such a tensor: what eager has in place of its result.

    It is called once more for each, on small tensors outside of the trace. Raises ``DifferentRanksError`` where the
    result has another rank.
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))
    kinds = {kind for leaf in leaves for kind in lower_kinds(leaf)}
    results = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
    for kind in kinds if results else ():
        try:
            with without_modes(), torch._C.DisableTorchFunction(), torch.random.fork_rng(devices=[]):
                examples = [_example(leaf, kind if kind in lower_kinds(leaf) else None) for leaf in leaves]
                of_numbers = not any(isinstance(each, torch.Tensor) for each in examples)
                again_args, again_kwargs = pytree.tree_unflatten(examples, spec)
                if again_args and (kind_of_first := number_kind(again_args[0])) is not None:
                    # A number has none of a tensor's methods; 0-d tensors are promoted as numbers are.
                    again_args = (torch.ones((), dtype=DTYPES[kind_of_first], device="cpu"), *again_args[1:])
                again = pytree.tree_leaves(func(*again_args, **again_kwargs))
        except Exception:  # noqa: BLE001, S112  eager raises on this path, too, or the sizes are too small
            continue
        tensors = [each for each in again if number_kind(each) is not None or isinstance(each, torch.Tensor)]
        for made, other in zip(results, tensors, strict=False):
            if isinstance(other, torch.Tensor) and other.dim() != made.dim():
                _refuse(kind)
            _note_as(made, other, of_numbers=of_numbers)


def _note_as(made: torch.Tensor, other: Any, *, of_numbers: bool) -> None:
    kind: Kind = other.dtype if isinstance(other, torch.Tensor) else type(other)
    if of_numbers and isinstance(kind, torch.dtype) and current().part(LowerKinds).exact:
        kind = next((python for python, dtype in DTYPES.items() if _category(dtype) == _category(kind)), kind)
    if is_other(kind, made.dtype):
        add_lower_kinds(made, {kind})


def _category(kind: Kind) -> int:
    dtype = DTYPES.get(kind, torch.int64) if isinstance(kind, type) else kind
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else int(dtype is not torch.bool)


def _example(leaf: Any, kind: Kind | None) -> Any:
    """A small value of the same kind as an argument, or of the one that eager has."""
    if isinstance(leaf, torch.Tensor):
        sizes = [1 if type(size) is int and size == 1 else 2 for size in leaf.shape]
        if isinstance(kind, type):
            return kind(1)
        # a plain tensor: nothing of it is traced
        return torch.ones(sizes, dtype=kind or leaf.dtype, device="cpu")
    if isinstance(leaf, Number):
        return leaf.kind(1)
    if isinstance(leaf, slice):
        return slice(*(_example(each, None) for each in (leaf.start, leaf.stop, leaf.step)))
    staged = number_kind(leaf)
    return leaf if staged is None or type(leaf) is staged else staged(1)


def _refuse(kind: Kind) -> None:
    words = f"the {kind.__name__}" if isinstance(kind, type) else f"the {str(kind).removeprefix('torch.')} tensor"
    raise DifferentRanksError(
        f"a result has one rank if it is made from {words} of one path, and another from the tensor of the other",
        hint="make both tensors of the same dtype: torch.tensor(...) in place of the number",
    )
