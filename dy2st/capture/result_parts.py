"""What a function returns, taken apart into the tensors and numbers of a program, and put together again.

A program gives tensors. All else of a result is the same in each run of it, since the guards hold: the containers with
their types, constants, and the attributes of dataclasses and of named tuples.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.values.number import number_kind

Build = Callable[[Iterator[Any]], Any]
# What is the same in each run of a program.
_CONSTANTS = (str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, torch.layout, slice, range, enum.Enum)
# Containers that are made of their items alone; torch's pytree has one name for all named tuples.
_NODES: tuple[Any, ...] = (
    *(list, tuple, dict, collections.OrderedDict, collections.defaultdict, collections.deque),
    collections.namedtuple,  # noqa: PYI024
)


def is_plain(result: Any) -> bool:
    """Whether a result is made of tensors and numbers, in containers that torch.export gives back as they are."""
    leaves, spec = pytree.tree_flatten(result, is_leaf=lambda each: isinstance(each, torch.Size))
    return _of_plain_nodes(spec) and all(
        isinstance(leaf, (torch.Tensor, str, type(None))) or number_kind(leaf) is not None for leaf in leaves
    )


def _of_plain_nodes(spec: pytree.TreeSpec) -> bool:
    """Whether all containers are Python's or torch's. One of another class is put together by code of its own.

    Within a capture that would be converted, and what it changes put back at the end.
    """
    if spec.is_leaf():
        return True
    known = spec.type in _NODES or getattr(spec.type, "__module__", "") == torch.return_types.__name__
    return known and all(map(_of_plain_nodes, spec.children()))


def fields_as_dicts(result: Any) -> Any:
    """A result whose dataclasses, but for those that torch's pytree knows, are dicts of their fields.

    Of these, what is the same in each run (a text, a dtype, None) is left out.
    """

    def opened(leaf: Any) -> Any:
        if not dataclasses.is_dataclass(leaf) or isinstance(leaf, type):
            return leaf
        held = {field.name: getattr(leaf, field.name, None) for field in dataclasses.fields(leaf)}
        return {name: fields_as_dicts(value) for name, value in held.items() if not isinstance(value, _CONSTANTS)}

    return pytree.tree_map(opened, result)


def taken_apart(result: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves of a result that a program has to compute, and a function that puts such leaves in their places.

    What can't be put together again is a leaf as a whole: whoever makes a tensor of it will refuse it.
    """
    leaves: list[Any] = []
    build = _build(result, leaves)
    return leaves, lambda values: build(iter(values))


def _build(value: Any, leaves: list[Any]) -> Build:
    if isinstance(value, torch.Size):
        parts = [_build(each, leaves) for each in value]
        return lambda values: torch.Size([part(values) for part in parts])
    if isinstance(value, _CONSTANTS) or type(value) in (bool, int, float, complex):
        return lambda _: value
    if type(value) in (list, tuple, collections.deque) or _is_named_tuple(value):
        return _sequence(value, leaves)
    if type(value) in (dict, collections.OrderedDict) or isinstance(value, collections.defaultdict):
        return _mapping(value, leaves)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and not _is_registered(value):
        return _dataclass(value, leaves)
    if _is_registered(value):
        return _registered(value, leaves)
    leaves.append(value)
    return next


def _sequence(value: Any, leaves: list[Any]) -> Build:
    parts = [_build(each, leaves) for each in value]
    kind = type(value)
    if _is_named_tuple(value):
        return lambda values: kind(*[part(values) for part in parts])
    if kind is collections.deque:
        return lambda values: collections.deque([part(values) for part in parts], value.maxlen)
    return lambda values: kind([part(values) for part in parts])


def _mapping(value: Any, leaves: list[Any]) -> Build:
    parts = [(key, _build(each, leaves)) for key, each in value.items()]
    if isinstance(value, collections.defaultdict):
        make = value.default_factory
        return lambda values: collections.defaultdict(make, [(key, part(values)) for key, part in parts])
    kind = type(value)
    return lambda values: kind([(key, part(values)) for key, part in parts])


def _dataclass(value: Any, leaves: list[Any]) -> Build:
    held = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    parts = [(name, _build(getattr(value, name), leaves)) for name in held]
    # Its other attributes, and no tensors of the trace.
    bare = copy.copy(value)
    for name in held:
        object.__setattr__(bare, name, None)

    def build(values: Iterator[Any]) -> Any:
        made = copy.copy(bare)
        for name, part in parts:
            object.__setattr__(made, name, part(values))
        return made

    return build


def _registered(value: Any, leaves: list[Any]) -> Build:
    """Of a class that torch's pytree knows: a result of ``torch.topk``, what a library has registered."""
    children, spec = pytree.tree_flatten(value, is_leaf=lambda each: each is not value)
    parts = [_build(each, leaves) for each in children]
    return lambda values: pytree.tree_unflatten([part(values) for part in parts], spec)


def _is_registered(value: Any) -> bool:
    return not pytree.tree_is_leaf(value)


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields") and type(value).__module__ != "torch.return_types"
