"""Tensors that are fetched where they are, in each call: those that are another object in one call than in the next.

Frameworks that spread a module over processes, hooks that compute a weight, and code that swaps parameters put new
tensors of the same kind in the same places. A generated function goes there: a dozen of attributes and subscripts.
"""

from __future__ import annotations

import collections
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from dy2st.guards.source import Source
from dy2st.values.plain_objects import dict_of

Fetch = Callable[[Sequence[Any]], tuple[Any, ...]]
Moved = Callable[[Sequence[Any], "tuple[torch.Tensor, ...]"], "tuple[torch.Tensor, ...] | None"]


def fetcher(roots: Sequence[Source], wanted: Iterable[Source]) -> Fetch | None:
    """A function of the values of ``roots`` that gives those of some sources below them, as they are now.

    There is none for a source that is found in another way than by attributes, elements, items and variables.
    """
    text = _Text()
    paths = {id(source): f"roots[{i}]" for i, source in enumerate(roots)}
    parents = {id(part): source for source in _all(roots) for part in source.parts}
    found = []
    for source in wanted:
        chain = [source]
        while id(chain[-1]) not in paths:
            parent = parents.get(id(chain[-1]))
            if parent is None:
                return None
            chain.append(parent)
        for part, holder in zip(chain[-2::-1], chain[:0:-1], strict=True):
            path = text.part(paths[id(holder)], holder.value, part)
            if path is None:
                return None
            paths[id(part)] = path
        found.append(paths[id(source)])
    inner = ", ".join(found)
    exec(f"def fetch(roots): return ({inner}{',' if found else ''})", text.space)  # noqa: S102  names are given by repr
    fetch: Fetch = text.space["fetch"]
    return fetch


def moved_tensors(roots: Sequence[Source], moving: Sequence[Source], own: Iterable[torch.Tensor]) -> Moved | None:
    """A function of the values of ``roots`` and of given tensors: those in the places of ``moving``, and the given.

    It gives None where these are no longer different tensors, also from each other one of ``own``. What was one tensor
    in several places has to be one. There is no such function where a place can't be gone to.
    """
    count, numbers = len(moving), {id(source.value): i for i, source in enumerate(moving)}
    again = [source for source in _all(roots) if source.is_known() and id(source.value) in numbers]
    ties = [(numbers[id(source.value)], count + i) for i, source in enumerate(again)]
    others = {id(tensor) for tensor in own} - numbers.keys()
    fetch = fetcher(roots, [*moving, *again])
    if fetch is None:
        return None

    def moved(values: Sequence[Any], given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...] | None:
        found = fetch(values)
        tensors = (*found[:count], *given)
        identities = set(map(id, tensors))
        if len(identities) != len(tensors) or not others.isdisjoint(identities):
            return None
        return None if any(found[i] is not found[j] for i, j in ties) else tensors

    return moved


def _all(roots: Sequence[Source]) -> list[Source]:
    found = list(roots)
    for source in found:  # it grows
        found += source.parts
    return found


class _Text:
    def __init__(self) -> None:
        self.space: dict[str, Any] = {}

    def part(self, whole: str, holder: Any, source: Source) -> str | None:
        """Where a part is found in a whole, which is ``holder`` now; None if no path leads there."""
        kind, *where = source.access
        if kind == "attribute" and where[0] in (dict_of(holder) or {}):
            return f"{whole}.__dict__[{where[0]!r}]"
        if kind in ("attribute", "get") and where[0].isidentifier():
            return f"{whole}.{where[0]}"
        if kind == "item" and type(holder) in (list, tuple, collections.deque):
            return f"{whole}[{where[0]}]"
        if kind == "key" and type(holder) in (dict, collections.OrderedDict):
            key = repr(where[0]) if type(where[0]) in (str, int, bool) else self._constant(where[0])
            return f"{whole}[{key}]"
        if kind == "global":
            return f"{self._constant(where[0])}[{where[1]!r}]"
        if kind == "cell" and isinstance(holder, types.FunctionType):
            cells = holder.__closure__ or ()
            return f"{whole}.__closure__[{next(i for i, cell in enumerate(cells) if cell is source.value)}]"
        return f"{whole}()" if kind == "call" and isinstance(holder, weakref.ReferenceType) else None

    def _constant(self, value: Any) -> str:
        name = f"v{len(self.space)}"
        self.space[name] = value
        return name
