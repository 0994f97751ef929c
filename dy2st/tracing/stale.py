"""Values that are out of date: in eager a write to another tensor has changed them too, on some path.

A graph has values, not memory. Where two tensors may share memory depending on the path, the graph changes the one that
is written to, and the other is *stale* from there on. That is no harm as long as nobody reads it again.

What a layer has made stale is so inside of it, and around it once it has become a part of the layer there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import torch

from dy2st.errors import AliasError, Location
from dy2st.source.user_frames import frames_of_user
from dy2st.tracing.layers import Layer
from dy2st.tracing.subgraph import Subgraph, storage_key, storage_of


@dataclass(frozen=True)
class Change:
    """A write in place: to what, in the user's words, and where; ``other`` is what it makes stale."""

    written: str
    other: str
    location: Location

    def refuse(self, storage: int) -> NoReturn:
        """Raise the error of a program that reads what has this storage after the write."""
        other = variable_of(storage, self.other)
        raise AliasError(
            f"{self.written} is changed in place, and {other} is used again afterwards: the two may or may not be the"
            " same tensor, depending on the path taken before",
            hint="compute a new tensor (y = y * 2 in place of y *= 2), or clone() it on every path",
            location=self.location,
        )


def variable_of(storage: int, otherwise: str) -> str:
    """The variable of the user's that holds a tensor with a storage, quoted, or other words for it."""
    for frame in frames_of_user():
        for name, value in frame.f_locals.items():
            if isinstance(value, torch.Tensor) and storage_key(value) == storage:
                return repr(name)
    return otherwise


def stale_here(layer: Layer) -> Iterator[dict[int, Change]]:
    """What is stale, by storage, for what is traced into a layer: there and in those around it."""
    return (each.stale for each in (layer, *layer.ancestors()) if each.stale)


def check_read(layer: Layer, storage: int | None) -> None:
    """A tensor with this storage is read in a layer."""
    for stale in stale_here(layer):
        if storage is not None and storage in stale:
            stale[storage].refuse(storage)


def check_repeated(body: Subgraph) -> None:
    """A loop's body reads nothing from outside that it makes stale: the next iteration would read it afterwards."""
    if body.layer.stale:
        own = body.own_storages()
        stale = {storage: change for storage, change in body.layer.stale.items() if storage not in own}
        for storage in (storage_of(read) for node in body.graph.nodes for read in node.all_input_nodes):
            if storage is not None and storage in stale:
                stale[storage].refuse(storage)
