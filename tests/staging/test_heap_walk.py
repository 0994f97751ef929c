"""Laws of the heap walk, on random graphs of objects with cycles; nothing is exported."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dy2st.errors import HeapSizeError
from dy2st.staging.memory import heap
from dy2st.staging.memory.heap import attributes, elements, held_by_function, is_closed, walk

EDGES = attributes, elements, held_by_function


class Slotted:
    """An object without a dict."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: list[Any] = []


def closed_over(held: list[Any]) -> Any:
    """A function with a closure."""
    return lambda: held


@dataclass
class Graph:
    """Random objects: of these kinds, numbered, each of which refers to others by number."""

    kinds: list[str]
    references: list[list[int]]
    objects: list[Any] = field(default_factory=list)

    def build(self) -> Graph:
        """The objects."""
        built = Graph(self.kinds, self.references)
        holders: list[Any] = []
        for kind in self.kinds:
            holder: Any = deque() if kind == "deque" else []
            made = {
                "list": lambda h: h,
                "deque": lambda h: h,
                "namespace": lambda h: SimpleNamespace(held=h),
                "slotted": lambda _: Slotted(),
                "function": closed_over,
                "dict": lambda h: {"held": h, "text": "leads nowhere"},
            }[kind](holder)
            holders.append(made.held if kind == "slotted" else holder)
            built.objects.append(made)
        for holder, targets in zip(holders, self.references, strict=True):
            holder.extend(built.objects[target] for target in targets)
        return built

    def reached(self, root: int, stops: set[str]) -> set[int]:
        """The numbers of what a root leads to, nothing of these kinds being entered."""
        found, left = {root}, [root]
        while left:
            number = left.pop()
            if self.kinds[number] not in stops:
                more = set(self.references[number]) - found
                found |= more
                left += more
        return found

    def numbers(self, values: Any) -> list[int]:
        """The numbers of objects, in their order."""
        known = {id(each): number for number, each in enumerate(self.objects)}
        return [known[id(value)] for value in values if id(value) in known]


KINDS = ["list", "deque", "namespace", "slotted", "function", "dict"]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph of up to twelve objects."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=12))
    number = st.integers(0, len(kinds) - 1)
    return Graph(kinds, [draw(st.lists(number, max_size=4)) for _ in kinds])


fast = settings(max_examples=150, deadline=None)


@fast
@given(graphs())
def test_all_that_is_led_to_is_found_once(graph: Graph) -> None:
    built = graph.build()
    found = built.numbers(walk([built.objects[0]], EDGES))
    assert len(found) == len(set(found))
    assert set(found) == graph.reached(0, set())


@fast
@given(graphs())
def test_the_order_is_a_matter_of_the_references_alone(graph: Graph) -> None:
    one, other = graph.build(), graph.build()
    orders = [each.numbers(walk([each.objects[0]], EDGES)) for each in (one, other)]
    assert orders[0] == orders[1]


@fast
@given(graphs(), st.sets(st.sampled_from(KINDS)))
def test_nothing_is_entered_at_which_a_walk_stops(graph: Graph, stops: set[str]) -> None:
    built = graph.build()
    stopped = {id(each) for kind, each in zip(graph.kinds, built.objects, strict=True) if kind in stops}
    found = built.numbers(walk([built.objects[0]], EDGES, lambda value: id(value) in stopped))
    assert set(found) == graph.reached(0, stops)


@fast
@given(graphs(), st.integers(1, 30))
def test_it_finds_all_or_refuses(graph: Graph, most: int) -> None:
    built = graph.build()
    every = list(walk([built.objects[0]], EDGES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heap, "MOST_OBJECTS", most)
        if len(every) <= most:
            assert len(list(walk([built.objects[0]], EDGES))) == len(every)
        else:
            with pytest.raises(HeapSizeError, match="'what it is called' leads to more than"):
                list(walk([built.objects[0]], EDGES, called="'what it is called'"))


def test_the_variable_that_leads_to_most_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "MOST_OBJECTS", 50)
    few, many = [[1]], [[i] for i in range(100)]
    with pytest.raises(HeapSizeError, match="'many' leads to more than 50 objects"):
        list(walk([few, many], EDGES))


def test_what_is_nearest_comes_first() -> None:
    deep: Any = [[[["d"]]]]
    order = list(walk([deep, near := ["n"]], EDGES))
    assert order[:2] == [deep, near]
    assert order[2:] == [deep[0], deep[0][0], deep[0][0][0]]


def test_no_chain_is_too_long() -> None:
    end: list[Any] = []
    chain = end
    for _ in range(50_000):
        chain = [chain]
    assert any(value is end for value in walk([chain], EDGES))


def test_what_an_edge_makes_is_kept_alive() -> None:
    made = 0

    def fresh(_: Any) -> list[Any]:
        nonlocal made
        made += 1
        return [object()] if made < 1000 else []

    # Were the first one freed, the next might have its identity, and would be taken for it.
    assert sum(1 for _ in walk([object()], (fresh,))) == 1000


def test_tensors_and_classes_lead_nowhere() -> None:
    inner = [1]
    tensor = torch.ones(2)
    tensor.held = inner  # type: ignore[attr-defined]
    kind = type("Kind", (), {"held": inner})
    assert list(walk([[tensor, kind]], EDGES, is_closed))[1:] == [tensor, kind]
