"""Results of branches and loops that may be the same object as something older, depending on the path.

Eager code that writes to such an object in place changes the older one too, on one path only. A graph can't, so the
write is refused; reading is fine.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from dy2st.errors import AliasError, Location, SharedContainerError
from dy2st.source.user_frames import named
from dy2st.tracing.subgraph import storage_key
from dy2st.values.describing import article


class Held:
    """A tensor as long as anything refers to its memory: itself, or a view that does not know what it is one of."""

    def __init__(self, tensor: torch.Tensor, live: Callable[[], Iterable[torch.Tensor]]) -> None:
        self.ref: weakref.ref[torch.Tensor] | None = weakref.ref(tensor)
        self.key = storage_key(tensor)
        self.live = live

    def tensor(self, gone: frozenset[int] = frozenset()) -> torch.Tensor | None:
        """It, or what shares its memory; None if nobody can see that memory any more, those ``gone`` left out."""
        found = None if self.ref is None else self.ref()
        if found is not None and id(found) in gone:
            same = (each for each in self.live() if storage_key(each) == self.key)
            return next((each for each in same if id(each) not in gone), None)
        if found is None and self.ref is not None:
            # ``detach()`` gives a tensor without a base.
            found = next((each for each in self.live() if storage_key(each) == self.key), None)
            self.ref = None if found is None else weakref.ref(found)
        return found


class Aliases:
    """What may be the same as what, by path; ``live`` gives the tensors that something still refers to."""

    def __init__(self, live: Callable[[], Iterable[torch.Tensor]]) -> None:
        self.live = live
        self.tensors: dict[int, list[tuple[Held, Held]]] = {}
        self.objects: dict[int, Any] = {}
        self.rows: set[int] = set()
        # What functions with a cache have given on one path, by storage.
        self.remembered: dict[int, torch.Tensor] = {}
        # The identities of tensors that nobody can look at after what is running now.
        self.gone: frozenset[int] = frozenset()
        # Storages stay alive with their tensors' metadata, so that identities stay unique.
        self.kept: list[Any] = []

    def may_be(self, result: torch.Tensor, older: torch.Tensor) -> None:
        """``result`` may share memory with ``older``, on some path."""
        # A view may be gone while the tensor that it is a view of is not.
        with torch._C.DisableTorchFunction():
            result, older = (t._base if t._is_view() and t._base is not None else t for t in (result, older))
            self.kept += [result.untyped_storage(), older.untyped_storage()]
        pair = (Held(result, self.live), Held(older, self.live))
        for key in (storage_key(result), storage_key(older)):
            self.tensors.setdefault(key, []).append(pair)

    def is_one_of(self, result: torch.Tensor, *older: torch.Tensor) -> None:
        """``result`` is one of these, or of what they may be."""
        for each in older:
            for other in (each, *self.others(each)):
                self.may_be(result, other)

    def others(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """What may share memory with ``tensor``, on some path, each once."""
        key = storage_key(tensor)
        others = (held for pair in self.tensors.get(key, ()) for held in pair if held.key != key)
        return list({id(t): t for held in others if (t := held.tensor()) is not None}.values())

    def shared_rows(self, row: torch.Tensor) -> None:
        """``row`` was appended to a list in a loop, as a copy."""
        self.rows.add(storage_key(row))
        self.kept.append(row.untyped_storage())

    def remember(self, tensor: torch.Tensor) -> None:
        """A function with a cache has given ``tensor`` on one path, and gives it again to whoever asks."""
        self.remembered[storage_key(tensor)] = tensor

    def object_may_be_older(self, made: Any) -> None:
        """``made`` stands for one of several older containers."""
        self.objects[id(made)] = made

    def knows(self, value: Any) -> bool:
        """Whether a tensor may be the same as some other one, on some path."""
        return isinstance(value, torch.Tensor) and storage_key(value) in self.tensors

    def unsure(self, a: Any, b: Any) -> bool:
        """Whether two different objects stand for what is one object on some path."""
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            keys = storage_key(a), storage_key(b)
            return any(
                one.key in keys and other.key in keys
                for key in keys
                for one, other in self.tensors.get(key, ())
                if one.tensor() is not None and other.tensor() is not None
            )
        return type(a) is type(b) and id(a) in self.objects and id(b) in self.objects

    @contextlib.contextmanager
    def last_use(self, tensors: Iterable[torch.Tensor]) -> Iterator[None]:
        """What these may be the same as does not matter meanwhile: only what is running now refers to them."""
        before = self.gone
        self.gone |= {id(each) for each in tensors}
        try:
            yield
        finally:
            self.gone = before

    def check_write(self, storage: int) -> None:
        """A tensor with this storage is written to in place."""
        if storage in self.rows:
            raise AliasError(
                "a tensor is changed in place that is also an element of a list, or a view of one, whose order or"
                " length only the graph knows",
                hint="put tensor.clone() into the list, or compute a new tensor",
            )
        if storage in self.remembered:
            raise AliasError(
                "a tensor is changed in place that a function with a cache has given on one path, and gives again",
                hint="change a clone() of it",
            )
        for result, older in self.tensors.get(storage, ()):
            a, b = result.tensor(self.gone), older.tensor(self.gone)
            if a is not None and b is not None:
                written, other = (a, b) if result.key == storage else (b, a)
                raise AliasError(
                    f"{named(written, 'a tensor')} is changed in place, which may or may not be the same tensor as"
                    f" {named(other, 'another one')}, depending on the path taken before",
                    hint="compute a new tensor (y = y * 2 in place of y *= 2), or clone() it on every path",
                )

    def check_change(self, owner: Any, location: Location | None = None) -> None:
        """A container or object is changed."""
        if id(owner) in self.objects:
            raise SharedContainerError(
                f"{named(owner, article(type(owner).__name__))} is changed, which may or may not be the same object as"
                " another one, depending on the path taken before",
                hint="make a copy on every path before it is changed",
                location=location,
            )
