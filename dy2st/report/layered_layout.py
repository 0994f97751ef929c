"""Places for the boxes of an acyclic graph: in layers from top to bottom, with few crossings and short edges.

Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System Structures", IEEE
Transactions on Systems, Man, and Cybernetics 11(2), 1981 (layers, points on long edges, barycentres).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

_SWEEPS = 8


@dataclass
class _Item:
    """A box, or a point at which a long edge passes a layer."""

    width: float
    layer: int
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    x: float = 0.0


@dataclass(frozen=True)
class Layout:
    """The centre of each box, and for each edge the points that it goes through, its ends included."""

    width: float
    layers: int
    centres: tuple[tuple[float, int], ...]
    routes: tuple[tuple[tuple[float, int], ...], ...]


def layered(widths: Sequence[float], edges: Sequence[tuple[int, int]], *, last: Sequence[int], gap: float) -> Layout:
    """Lay out boxes of these widths. ``edges`` go from an earlier to a later box; ``last`` are put at the bottom.

    Places are pairs of a horizontal coordinate and the number of a layer. Boxes of one layer are ``gap`` apart or more.
    """
    items = [_Item(width, 0) for width in widths]
    for above, below in sorted(edges, key=lambda edge: edge[1]):
        items[below].layer = max(items[below].layer, items[above].layer + 1)
    bottom = max((item.layer for place, item in enumerate(items) if place not in last), default=-1) + 1
    for place in last:
        items[place].layer = max(items[place].layer, bottom)
    _sink(items, edges)
    chains = [_chain(items, *edge) for edge in edges]
    layers: list[list[int]] = [[] for _ in range(max((item.layer for item in items), default=-1) + 1)]
    for place, item in enumerate(items):
        layers[item.layer].append(place)
    _order(items, layers)
    _place(items, layers, gap)
    left = min((item.x - item.width / 2 for item in items), default=0.0)
    for item in items:
        item.x -= left
    return Layout(
        max((item.x + item.width / 2 for item in items), default=0.0),
        len(layers),
        tuple((item.x, item.layer) for item in items[: len(widths)]),
        tuple(tuple((items[place].x, items[place].layer) for place in chain) for chain in chains),
    )


def _sink(items: Sequence[_Item], edges: Sequence[tuple[int, int]]) -> None:
    """Put a box that reads nothing right above the first that reads it."""
    readers: dict[int, list[int]] = {}
    for above, below in edges:
        readers.setdefault(above, []).append(below)
    read = {below for _, below in edges}
    for place, nearest in readers.items():
        if place not in read:
            items[place].layer = min(items[each].layer for each in nearest) - 1


def _chain(items: list[_Item], above: int, below: int) -> list[int]:
    """The items of an edge, with a new point for each layer that it passes."""
    chain = [above]
    for layer in range(items[above].layer + 1, items[below].layer):
        chain.append(len(items))
        items.append(_Item(0.0, layer))
    chain.append(below)
    for first, second in pairwise(chain):
        items[first].below.append(second)
        items[second].above.append(first)
    return chain


def _order(items: Sequence[_Item], layers: Sequence[list[int]]) -> None:
    """Order each layer by the mean place of its neighbours, downwards and upwards in turn."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers[1:] if down else layers[-2::-1]:
            beside = layers[items[layer[0]].layer + (-1 if down else 1)] if layer else []
            places = {place: number for number, place in enumerate(beside)}
            now = {place: number for number, place in enumerate(layer)}

            def key(
                place: int, down: bool = down, places: dict[int, int] = places, now: dict[int, int] = now
            ) -> tuple[float, int]:
                near = items[place].above if down else items[place].below
                return fmean(places[each] for each in near) if near else now[place], now[place]

            layer.sort(key=key)


def _place(items: Sequence[_Item], layers: Sequence[list[int]], gap: float) -> None:
    """Move each item towards its neighbours, as far as the order and the gaps let it."""
    for layer in layers:
        x = 0.0
        for place in layer:
            items[place].x = x + items[place].width / 2
            x += items[place].width + gap
        for place in layer:
            items[place].x -= (x - gap) / 2
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = []
            for place in layer:
                near = [*items[place].above, *items[place].below]
                wanted.append(fmean(items[each].x for each in near) if near else items[place].x)
            apart = [(items[a].width + items[b].width) / 2 + gap for a, b in pairwise(layer)]
            for place, x in zip(layer, _spread(wanted, apart), strict=True):
                items[place].x = x


def _spread(wanted: Sequence[float], apart: Sequence[float]) -> list[float]:
    """Coordinates near to those that are wanted, at least so far apart: the mean of two that are packed to one side."""
    right, left = list(wanted), list(wanted)
    for place, distance in enumerate(apart, 1):
        right[place] = max(right[place], right[place - 1] + distance)
    for place in range(len(apart) - 1, -1, -1):
        left[place] = min(left[place], left[place + 1] - apart[place])
    return [(a + b) / 2 for a, b in zip(left, right, strict=True)]
