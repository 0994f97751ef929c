"""Trees of anything in place of tensors: named tuples are put together without the constructors of their classes.

``torch.nn.utils.rnn.PackedSequence`` asks what it is given for its device, so that a tree of sizes can't be like a tree
of tensors. The shape of a tensor is put together as one, where torch makes a plain tuple of it.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
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


def put_back(values: Any, like: Any, leaf: Callable[[Any, Any], Any]) -> Any:
    """A tree with ``leaf`` of each of its leaves and of what another one, ``like``, has in its place.

    Lists and dicts stay the objects that they are: code may have noted them, and ask for their identity.
    """
    kind: Any = type(values)
    if kind is not type(like) or not issubclass(kind, (list, tuple, dict)) or len(values) != len(like):
        return leaf(values, like)
    if kind is tuple or hasattr(kind, "_fields"):
        return _made((put_back(part, other, leaf) for part, other in zip(values, like, strict=True)), kind)
    if kind is list:
        values[:] = [put_back(part, other, leaf) for part, other in zip(values, like, strict=True)]
        return values
    if kind is dict and values.keys() == like.keys():
        values.update({key: put_back(part, like[key], leaf) for key, part in values.items()})
        return values
    return leaf(values, like)


def shapes_again(values: Any, like: Any) -> Any:
    """A tree that torch has made of another one, ``like``, with the shapes of tensors where that has them."""
    return put_back(values, like, _shape_like)


def _shape_like(value: Any, like: Any) -> Any:
    return _shape(value, None) if type(like) is torch.Size and type(value) is tuple else value


def with_leaves(leaves: Iterable[Any], spec: pytree.TreeSpec) -> Any:
    """A tree of the structure ``spec``, of which the leaves may be anything.

    Args:
        leaves: as many as the structure has, in its order.
        spec: what ``tree_flatten`` has said of a tree of tensors.
    """
    with constructors_unasked():
        return pytree.tree_unflatten(leaves, spec)
