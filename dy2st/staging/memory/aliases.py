"""What may be the same as something older, depending on the path: results of branches and loops.

Eager code that writes to such an object in place changes the older one too, on one path only. A graph can't. Of
tensors, whatever may share memory with one that is written to is *stale* from there on (``tracing.stale``): the program
is refused where it reads that again. Whoever called reads the inputs, parameters, buffers and constants in any case, so
that a write to what may be one of them is refused at once. A change of a container is, too.

``staging.memory.points_to`` says what may share memory in the iterations of a loop.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from dy2st.errors import AliasError, SharedContainerError
from dy2st.source.user_frames import location_of, named, users_frame
from dy2st.tracing.layers import Layer
from dy2st.tracing.stale import Change, variable_of
from dy2st.tracing.subgraph import storage_key
from dy2st.values.describing import article
from dy2st.values.journal import Slot
from dy2st.values.plain_objects import attributes_of
from dy2st.values.references import note_list, refer_to, refer_to_lists
from dy2st.values.undefined import UNSET, Undefined

COPY_FIRST = "make a copy on every path before it is changed"


class Aliases:
    """What may be the same as what, by path.

    ``layer`` gives the layer that is traced into; ``outlives`` whether somebody else reads a storage when the program
    has run; ``in_use`` whether the code that goes on still has one of some containers.
    """

    def __init__(
        self, layer: Callable[[], Layer], outlives: Callable[[int], bool], in_use: Callable[[Sequence[Any]], bool]
    ) -> None:
        self.layer = layer
        self.outlives = outlives
        self.in_use = in_use
        # By storage, the storages that it may share memory with, in order.
        self.related: dict[int, dict[int, None]] = defaultdict(dict)
        # By such a pair, the jumps one of which has been made wherever the two are the same.
        self.after_jumps: dict[tuple[int, int], frozenset[Any]] = {}
        # Containers and objects that a list has a copy of, or a cache the original.
        self.objects: dict[int, Any] = {}
        # By a container that can't be changed, itself and what gives the attempt up for one in which it can.
        self.otherwise: dict[int, tuple[Any, Callable[[], None]]] = {}
        # By a container, itself and those that it may be on some path.
        self.alike: dict[int, list[Any]] = {}
        self.rows: set[int] = set()
        # What functions with a cache have given on one path, by storage.
        self.remembered: dict[int, torch.Tensor] = {}
        # What arrays of numpy's share the memory of, by storage.
        self.arrays: dict[int, torch.Tensor] = {}
        # The storages of tensors that are none of the trace: constants, which whoever called reads.
        self.real: set[int] = set()
        # Storages stay alive with their tensors' metadata, so that identities stay unique.
        self.kept: dict[int, Any] = {}
        # How often each storage has been written to.
        self.writes: Counter[int] = Counter()

    def storage(self, tensor: torch.Tensor) -> int:
        """The identity of a tensor's storage, which nothing else will have."""
        key = storage_key(tensor)
        if not isinstance(tensor, FakeTensor):
            self.real.add(key)
        if key not in self.kept:
            with torch._C.DisableTorchFunction():
                self.kept[key] = tensor.untyped_storage()
        return key

    def relate(self, one: int, other: int, jumps: frozenset[Any] = frozenset()) -> None:
        """Two storages may be the same, on some path; if there are ``jumps``, on those that have made one of them."""
        if one == other:
            return
        known = other in self.related.get(one, ())
        earlier = self.after_jumps.get((one, other), frozenset())
        for pair in ((one, other), (other, one)):
            self.related[pair[0]][pair[1]] = None
            if jumps and (earlier or not known):
                self.after_jumps[pair] = earlier | jumps
            else:
                self.after_jumps.pop(pair, None)

    def related_staying(self, storage: int, left: frozenset[Any]) -> list[int]:
        """The storages that one may be the same as on a path that has made none of the jumps ``left``."""
        others = self.related.get(storage, ())
        return [each for each in others if not self._jumped(storage, each) or not self._jumped(storage, each) <= left]

    def _jumped(self, one: int, other: int) -> frozenset[Any]:
        return self.after_jumps.get((one, other), frozenset())

    def reach(self, tensor: torch.Tensor) -> set[int]:
        """The storage of a tensor, and those that it may be on some path."""
        key = self.storage(tensor)
        return {key, *self.related.get(key, ())}

    def is_one_of(self, result: torch.Tensor, *older: torch.Tensor) -> None:
        """``result`` is one of these, or of what they may be."""
        key = self.storage(result)
        for other in {storage for each in older for storage in self.reach(each)}:
            self.relate(key, other)

    def joined(
        self,
        results: Sequence[torch.Tensor],
        *arms: tuple[Sequence[Any], set[int]],
        jumps: Sequence[frozenset[Any]] = (),
    ) -> None:
        """Each result is one of its values in ``arms``, which come with the storages that the arm has made.

        Results may be one tensor where their values in one arm may be. ``jumps`` are those that each arm ends with.
        """
        keys = [self.storage(result) for result in results]
        for (values, own), left in zip(arms, jumps or [frozenset()] * len(arms), strict=True):
            places: dict[int, list[int]] = {}
            reached = [self.reach(value) if isinstance(value, torch.Tensor) else set() for value in values]
            for key, value in zip(keys, values, strict=True):
                if isinstance(value, torch.Tensor):
                    places.setdefault(storage_key(value), []).append(key)
            for key, cells, value in zip(keys, reached, values, strict=True):
                for cell in cells:
                    made = left or self._jumped(storage_key(value), cell)
                    for other in places.get(cell, ()):
                        self.relate(key, other, made)
                    if cell not in own or cell in self.remembered:
                        self.relate(key, cell, made)

    def shared_rows(self, row: torch.Tensor) -> None:
        """``row`` was appended to a list in a loop, as a copy."""
        self.rows.add(self.storage(row))

    def share_with_array(self, tensor: torch.Tensor) -> None:
        """An array of numpy's has the memory of ``tensor``."""
        self.arrays[self.storage(tensor)] = tensor

    def remember(self, tensor: torch.Tensor) -> None:
        """A function with a cache has given ``tensor`` on one path, and gives it again to whoever asks."""
        self.remembered[storage_key(tensor)] = tensor

    def object_is_shared(self, made: Any) -> None:
        """A container is seen from where a change of it would not be, on some path."""
        self.objects[id(made)] = made
        if type(made) is list:
            note_list(made)
            return
        for part in made.values() if type(made) is dict else attributes_of(made).values():
            if type(part) is list:  # it may change where there are references to what holds it
                self.otherwise.setdefault(id(part), (part, functools.partial(refer_to, made)))

    def may_be_one(self, *containers: Any) -> None:
        """These may be one container, on some path."""
        for each in containers:
            self.alike.setdefault(id(each), [each]).extend(other for other in containers if other is not each)

    def any_alike(self) -> bool:
        """Whether there is a container that may be another one."""
        return bool(self.objects or self.alike)

    def _others(self, owner: Any) -> list[Any]:
        """The containers that one may be, on some path."""
        found, left = {id(owner): owner}, [owner]
        while left:
            for each in self.alike.get(id(left.pop()), ()):
                if id(each) not in found:
                    found[id(each)] = each
                    left.append(each)
        return [each for each in found.values() if each is not owner]

    def unsure(self, a: Any, b: Any) -> bool:
        """Whether two different objects stand for what is one object on some path."""
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            return storage_key(b) in self.related.get(storage_key(a), ())
        known = self.objects.keys() | self.alike.keys()
        return type(a) is type(b) and id(a) in known and id(b) in known

    def check_write(self, storage: int) -> None:
        """A tensor with this storage is written to in place."""
        self.writes[storage] += 1
        if storage in self.rows:
            raise AliasError(
                "a tensor is changed in place, and it is an element, or a view of an element, of a list whose order or"
                " length is data-dependent",
                hint="put tensor.clone() into the list, or compute a new tensor",
            )
        if storage in self.arrays:
            raise AliasError(
                "a tensor is changed in place, and an array of numpy's has its memory",
                hint="make the array of a clone() of it",
            )
        if storage in self.remembered:
            raise AliasError(
                "a tensor is changed in place, and a function with a cache has given it on one path and gives it again",
                hint="change a clone() of it",
            )
        others = self.related.get(storage)
        if not others:
            return
        written, location = variable_of(storage, "a tensor"), location_of(users_frame())
        stale = self.layer().stale
        for other in others:
            if other in self.remembered or other in self.real or self.outlives(other):
                raise AliasError(
                    f"{written} is changed in place, and it may or may not be the same tensor as"
                    f" {variable_of(other, 'another one')}, depending on the path taken before",
                    hint="compute a new tensor (y = y * 2 in place of y *= 2), or clone() it on every path",
                )
            if other not in stale:
                stale[other] = Change(written, variable_of(other, "another one"), location)

    def check_change(self, owner: Any) -> None:
        """A container or object is changed: nobody may have another one that is this one on some path."""
        if id(owner) in self.otherwise:
            self.otherwise[id(owner)][1]()
        if id(owner) in self.objects or self.used_by_others(owner):
            refer = functools.partial(self._refer, owner)
            raise SharedContainerError(
                f"{named(owner, article(type(owner).__name__))} is changed, and it may or may not be the same object"
                " as another one, depending on the path taken before",
                hint=COPY_FIRST,
            ).or_else(refer)

    def _refer(self, owner: Any) -> None:
        if type(owner) is not list:
            refer_to(owner)
        elif id(owner) in self.objects:
            refer_to_lists()

    def used_by_others(self, owner: Any) -> list[Any]:
        """What a container or object may be on some path, if the code that goes on still has one of these."""
        others = self._others(owner)
        return others if others and self.in_use(others) else []

    def change_attribute(self, slot: Slot, *, made_here: Callable[[Any], bool]) -> list[tuple[Slot, Undefined]]:
        """An attribute is changed: the values that it has from now on in what may be the same object.

        Where the two are one, eager changes both. So the others' is not known any more, which is an error if it is
        read. What the trace has not made (``made_here``) outlives it, and can't be left so. Nor can whether there is
        such an attribute: all of them have it before.
        """
        others = self.used_by_others(slot.owner)
        had = all(Slot.of("attribute", each, slot.name).get() is not UNSET for each in (slot.owner, *others))
        if id(slot.owner) in self.objects or not had or not all(map(made_here, others)):
            self.check_change(slot.owner)
        name = f"{type(slot.owner).__name__}.{slot.name}"
        reason = "another object has been changed, which may or may not be the same one, depending on the path taken"
        refer = functools.partial(refer_to, slot.owner)
        where, kind = location_of(users_frame()), SharedContainerError
        lost = Undefined(name, reason, COPY_FIRST, where, kind, otherwise=refer) if others else None
        return [] if lost is None else [(Slot.of("attribute", other, slot.name), lost) for other in others]
