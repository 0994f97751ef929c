"""What a value leads to, as far as some code can read it: one tree of sources, by path from some roots.

Each source says in its *key* what a program depends on, and leads to parts by *access* (an attribute, an element...).
Two walks with the same keys in the same order found the same world: a program captured in one is right in the other.

* A constant is its type and value; a function its code; a class, a module of Python's and what is opaque itself.
* A tensor is its dtype, device, layout, shape, strides and whether it needs gradients: its values are an input.
* A container is its type, its length or its keys, and its elements; an object is its class and the attributes that
  the code names.
* What was found before is the number of the source at which it was: which things are one thing is part of the world.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dy2st.errors import HeapSizeError
from dy2st.guards.constants import constant_key, is_constant
from dy2st.guards.kinds import described
from dy2st.guards.names import Names
from dy2st.guards.object_parts import own_parts
from dy2st.guards.source import Same, Source

MOST_SOURCES = 200_000


@dataclass
class World:
    """What a walk found: the sources in order; the tensors among them, each once."""

    sources: list[Source]
    tensors: list[Source]

    @functools.cached_property
    def key(self) -> tuple[Any, ...]:
        """What is the same where a program is right."""
        return tuple(source.key for source in self.sources)

    def difference(self, other: World) -> str | None:
        """The name of the first source that is not the same in another world."""
        for one, two in zip(self.sources, other.sources, strict=False):
            if one.key != two.key or one.name != two.name:
                return one.name
        return None if len(self.sources) == len(other.sources) else "what it reads"


def observe(
    roots: Sequence[tuple[str, Any]], names: Names, free: Mapping[str, Sequence[int | None]], *, learn: bool
) -> World:
    """The world as some code can read it from ``roots``, pairs of a name and a value.

    ``free`` says for tensors by their name which of their dimensions may have any size, from the least that is given
    on; None is a fixed one. With ``learn`` the names grow
    by those of the functions that are found, until there are no more.

    Raises:
        HeapSizeError: the roots lead to more than can be looked at before each call.
        UnguardedError: they lead to what changes as it is read (a generator, an iterator).
    """
    names.learning = learn
    while True:
        before = names.size()
        world = _Walk(names, free).run(roots)
        if names.size() == before:
            return world


class _Walk:
    def __init__(self, names: Names, free: Mapping[str, Sequence[int | None]]) -> None:
        self.names, self.free = names, free
        self.numbers: dict[int, int] = {}
        self.alive: list[Any] = []  # so that no identity is used twice
        # The numbers of what has been opaque so far: on another path it may be looked into.
        self.unseen: set[int] = set()
        self.storages: dict[int, int] = {}

    def run(self, roots: Sequence[tuple[str, Any]]) -> World:
        sources = [Source(("root", i), value, name) for i, (name, value) in enumerate(roots)]
        tensors: list[Source] = []
        for source in sources:  # it grows
            plain = self.names.replaced and type(source.value) is tuple and all(map(is_constant, source.value))
            known = None if plain else self.numbers.get(id(source.value))
            if known is not None and (source.opaque or known not in self.unseen):
                source.key = ("same as", known)
                continue
            if is_constant(source.value):
                source.key = constant_key(source.value)
                continue
            number = -1 if plain else self.numbers.setdefault(id(source.value), len(self.numbers))
            self.alive.append(source.value)
            if source.opaque:
                source.key = Same(source.value)
                self.unseen.add(number)
                continue
            self.unseen.discard(number)
            if isinstance(source.value, torch.Tensor):
                parts: Iterable[Source] = own_parts(self.names, source.value)
                if self.names.has("grad") and source.value.is_leaf and source.value.grad is None:
                    # Code that reads one which is there is refused.
                    parts = [*parts, Source(("get", "grad"), None, ".grad")]
                source.key = self._tensor(source)
                tensors.append(source)
            else:
                source.key, parts = described(self.names, source.value, source.name)
            if self.names.identified and Same(source.value) in self.names.identified:
                source.key = Same(source.value), source.key
            source.parts = list(parts)
            for part in source.parts:
                part.name = f"{source.name}{part.name}"
            sources += source.parts
            if len(sources) > MOST_SOURCES:
                raise HeapSizeError(
                    f"{roots[0][0]} leads to more than {MOST_SOURCES} values: too many to compare before each call",
                    hint="name what never changes in freeze=..., or keep numbers in a tensor",
                )
        return World(sources, tensors)

    def _tensor(self, source: Source) -> Any:
        tensor = source.value
        free = self.free.get(source.name, ())
        least = [free[d] if d < len(free) else None for d in range(tensor.dim())]
        wild = [bound is not None and size >= bound for bound, size in zip(least, tensor.shape, strict=True)]
        shape = tuple("*" if any_size else size for size, any_size in zip(tensor.shape, wild, strict=True))
        strided = tensor.layout is torch.strided
        strides: Any = None
        if strided:
            # A dimension of one element has any stride, and no operator minds which.
            alike = tensor.is_contiguous() and not self.names.has("stride")
            strides = tensor.is_contiguous() if any(wild) or alike else tensor.stride()
        key: Any = (
            *(type(tensor), tensor.dtype, tensor.device, tensor.layout, shape, strides, tensor.requires_grad),
            *(tensor.is_inference(), tensor.is_conj(), tensor.is_neg()),
        )
        if self.names.asks_for_leaves():
            key = (*key, tensor.is_leaf)
        if not self.names.memory or not strided:
            return key
        address = tensor.untyped_storage().data_ptr()
        place = tensor.storage_offset() if self.names.asks_for_memory() else None
        return (*key, place, self.storages.setdefault(address, len(self.storages)))
