"""Trees of anything in place of tensors: named tuples are put together without the constructors of their classes.

``torch.nn.utils.rnn.PackedSequence`` asks what it is given for its device, so that a tree of sizes can't be like a tree
of tensors.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils import _pytree as pytree

_NAMED: Any = collections.namedtuple  # noqa: PYI024 - pytree's name of all of them


def _made(values: Iterable[Any], kind: Any) -> Any:
    return tuple.__new__(kind, values)


@contextmanager
def constructors_unasked() -> Iterator[None]:
    """Meanwhile torch puts named tuples together as they were."""
    native = pytree.SUPPORTED_NODES[_NAMED]
    pytree.SUPPORTED_NODES[_NAMED] = native._replace(unflatten_fn=_made)
    try:
        yield
    finally:
        pytree.SUPPORTED_NODES[_NAMED] = native


def with_leaves(leaves: Iterable[Any], spec: pytree.TreeSpec) -> Any:
    """A tree of the structure ``spec``, of which the leaves may be anything.

    Args:
        leaves: as many as the structure has, in its order.
        spec: what ``tree_flatten`` has said of a tree of tensors.
    """
    with constructors_unasked():
        return pytree.tree_unflatten(leaves, spec)
