"""Trees of anything in place of tensors: named tuples are put together without the constructors of their classes.

``torch.nn.utils.rnn.PackedSequence`` asks what it is given for its device, so that a tree of sizes can't be like a tree
of tensors. The shape of a tensor is put together as one, where torch makes a plain tuple of it.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

_NAMED: Any = collections.namedtuple  # noqa: PYI024 - pytree's name of all of them


def _made(values: Iterable[Any], kind: Any) -> Any:
    return tuple.__new__(kind, values)


def _shape(values: Iterable[Any], _: Any) -> Any:
    sizes = tuple(values)
    return torch.Size(sizes) if all(isinstance(size, (int, torch.SymInt)) for size in sizes) else sizes


@contextmanager
def constructors_unasked() -> Iterator[None]:
    """Meanwhile torch puts named tuples and shapes together as they were."""
    native = {kind: pytree.SUPPORTED_NODES[kind] for kind in (_NAMED, torch.Size)}
    for kind, made in ((_NAMED, _made), (torch.Size, _shape)):
        pytree.SUPPORTED_NODES[kind] = native[kind]._replace(unflatten_fn=made)
    try:
        yield
    finally:
        pytree.SUPPORTED_NODES.update(native)


def shapes_again(values: Any, like: Any) -> Any:
    """A tree that torch has made of another one, ``like``, with the shapes of tensors where that has them.

    Its lists and dicts stay the objects that they are: code may have noted them, and ask for their identity.
    """
    if type(like) is torch.Size and type(values) is tuple:
        return _shape(values, None)
    if type(values) is not type(like) or not isinstance(values, (list, tuple, dict)) or len(values) != len(like):
        return values
    if type(values) is tuple:
        return tuple(map(shapes_again, values, like))
    if type(values) is list:
        values[:] = map(shapes_again, values, like)
    if type(values) is dict:
        values.update((key, shapes_again(part, like.get(key))) for key, part in list(values.items()))
    return values


def with_leaves(leaves: Iterable[Any], spec: pytree.TreeSpec) -> Any:
    """A tree of the structure ``spec``, of which the leaves may be anything.

    Args:
        leaves: as many as the structure has, in its order.
        spec: what ``tree_flatten`` has said of a tree of tensors.
    """
    with constructors_unasked():
        return pytree.tree_unflatten(leaves, spec)
