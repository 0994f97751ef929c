"""Whether eager raises, too, where a torch function raises while it is traced.

A trace has no values: what a function refuses there for the dtypes and sizes of its arguments it refuses in eager, too.
Where a value is of one of several kinds, the kind for which a function raises is so one for which eager raises, and no
reason to refuse the model. Other errors are those of tracing alone. Which it is, tensors of the same dtypes and sizes
tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from dy2st.staging.branches.implicit_exceptions import mark_as_eagers

# Of two errors of one cause the texts begin alike; their types may differ.
_ALIKE = 20
# Tensors of more elements than these are not made for this.
_MOST_ELEMENTS = 1 << 20


def note_eager_error(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> None:
    """Mark an error that ``func`` raised while it was traced, if eager raises it for these arguments, at any sizes."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    if not all(_is_plain(leaf) for leaf in leaves):
        return
    with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.random.fork_rng(devices=[]):
        # Open sizes are all the same, and then each another one.
        for sizes in (_Sizes(itertools.repeat(4)), _Sizes(itertools.count(5, 2))):
            made = [sizes.zeros(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            real_args, real_kwargs = pytree.tree_unflatten(made, spec)
            try:
                func(*real_args, **real_kwargs)
            except Exception as found:  # noqa: BLE001  whatever it is
                if str(found)[:_ALIKE] != str(error)[:_ALIKE]:
                    return
            else:
                return
    mark_as_eagers(error)


def _is_plain(leaf: Any) -> bool:
    """Whether all is known of an argument but the values and open sizes of a tensor."""
    if isinstance(leaf, torch.Tensor):
        size = math.prod(each for each in leaf.shape if type(each) is int)
        return type(leaf) is FakeTensor and size <= _MOST_ELEMENTS and leaf.layout is torch.strided
    return leaf is None or leaf is Ellipsis or isinstance(leaf, (bool, int, float, str, slice, torch.dtype))


class _Sizes:
    """What stands for the sizes that are open."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._known: dict[str, int] = {}

    def zeros(self, fake: torch.Tensor) -> torch.Tensor:
        """A tensor of the same dtype and sizes."""
        return torch.zeros([self._size(each) for each in fake.shape], dtype=fake.dtype)

    def _size(self, size: Any) -> int:
        if type(size) is int:
            return size
        name = str(size.node.expr)
        if name not in self._known:
            self._known[name] = next(self._numbers)
        return self._known[name]
