"""Whether eager raises, too, where a torch function raises while it is traced.

A trace has no values: what a function refuses there for the dtypes and sizes of its arguments it refuses in eager, too.
So the path that leads there is one on which eager raises, and the graph has to, and no reason to refuse the model: an
arm that the inputs never take, a kind of a value that another test has ruled out. Other errors are those of tracing
alone. Which it is, tensors of the same dtypes and sizes tell.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from dy2st.tracing.replaced import without_modes

# Tensors of more elements than these are not made for this.
_MOST_ELEMENTS = 1 << 20


def eager_error(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception | None:
    """What eager raises in place of ``error`` for these arguments, at any sizes; None if it may raise nothing."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    if type(error) not in (IndexError, RuntimeError, ValueError, TypeError) or not all(map(_is_plain, leaves)):
        return None
    raised: Exception | None = None
    texts = set()
    with without_modes(), torch._C.DisableTorchFunction(), torch.random.fork_rng(devices=[]):
        for numbers in _OPEN_SIZES:
            sizes = _Sizes(numbers())
            made = [sizes.tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            real_args, real_kwargs = pytree.tree_unflatten(made, spec)
            try:
                func(*real_args, **real_kwargs)
            except (IndexError, RuntimeError, ValueError, TypeError) as found:
                raised = found
                texts.add(str(found))
            else:
                return None
    # An error that is about a size tells it, and another size may be right: x[9] of 4 elements, and of 12.
    return raised if len(texts) == 1 else None


def _is_plain(leaf: Any) -> bool:
    """Whether all is known of an argument but the values and open sizes of a tensor."""
    if isinstance(leaf, torch.Tensor):
        size = math.prod(each for each in leaf.shape if type(each) is int)
        return type(leaf) is FakeTensor and size <= _MOST_ELEMENTS and leaf.layout is torch.strided
    return leaf is None or leaf is Ellipsis or isinstance(leaf, (bool, int, float, str, slice, torch.dtype))


# Open sizes that are all the same, and that are each another one.
_OPEN_SIZES: tuple[Callable[[], Iterator[int]], ...] = (
    *(functools.partial(itertools.repeat, size) for size in (0, 1, 2, 4)),
    functools.partial(itertools.count, 5, 2),
)


class _Sizes:
    """What stands for the sizes that are open."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._known: dict[str, int] = {}

    def tensor(self, fake: torch.Tensor) -> torch.Tensor:
        """A tensor of the same dtype and sizes, of values that are good for most functions."""
        sizes = [self._size(each) for each in fake.shape]
        if not fake.dtype.is_floating_point:
            return torch.zeros(sizes, dtype=fake.dtype)
        return torch.rand(sizes, generator=torch.Generator().manual_seed(0)).to(fake.dtype)

    def _size(self, size: Any) -> int:
        if type(size) is int:
            return size
        name = str(size.node.expr)
        if name not in self._known:
            self._known[name] = next(self._numbers)
        return self._known[name]
