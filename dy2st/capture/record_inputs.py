"""Dataclasses among the arguments: torch's pytree has to know them before their tensors can be inputs of a program.

They are registered as ``torch.export.register_dataclass`` would: from then on, in this process, they are containers to
pytree. A class that the user or a library has registered stays as it is.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import UsageError
from dy2st.values.container_structure import is_record, items_of, record_like
from dy2st.values.describing import article


def know_records(values: Any) -> None:
    """Register the classes of the dataclasses among the leaves of some arguments, and of those in them."""
    for leaf in pytree.tree_leaves(values):
        kind: Any = type(leaf)
        if not dataclasses.is_dataclass(leaf) or isinstance(leaf, type) or kind in pytree.SUPPORTED_NODES:
            continue
        if is_record(leaf):
            if not _is_made_of_its_items(leaf):
                continue
            pytree.register_pytree_node(
                kind,
                _parts,
                functools.partial(_made, kind),
                serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
                flatten_with_keys_fn=_with_keys,
                to_dumpable_context=list,
                from_dumpable_context=tuple,
            )
        elif all(field.init for field in dataclasses.fields(leaf)):
            torch.export.register_dataclass(kind, serialized_type_name=f"{kind.__module__}.{kind.__qualname__}")
        else:
            continue
        know_records(leaf)


def _is_made_of_its_items(record: Any) -> bool:
    """Whether a dataclass that is a dict, too, holds what its fields hold, but for those that are None."""
    held = {field.name: getattr(record, field.name, None) for field in dataclasses.fields(record)}
    items = items_of(record)
    given = {name: value for name, value in held.items() if value is not None}
    return set(given) == set(items) and all(items[name] is value for name, value in given.items())


def _parts(record: Any) -> tuple[list[Any], tuple[Any, ...]]:
    if not _is_made_of_its_items(record):
        raise UsageError(
            f"{article(type(record).__name__)} holds something else in its fields than in its items",
            hint="give the class no fields beside its items, or register it with torch.utils._pytree",
        )
    items = items_of(record)
    return list(items.values()), tuple(items)


def _made(kind: Any, children: Any, keys: Any) -> Any:
    """A record of such items; nothing of the user's runs, which a capture would undo."""
    items = dict(zip(keys, children, strict=True))
    base: Any = OrderedDict if issubclass(kind, OrderedDict) else dict
    attributes = {field.name: items.get(field.name) for field in dataclasses.fields(kind)}
    return record_like(base.__new__(kind), attributes, items)


def _with_keys(record: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
    values, keys = _parts(record)
    return [(pytree.MappingKey(key), value) for key, value in zip(keys, values, strict=True)], keys
