"""Row 47: ``==``, ``<`` and ``in`` of containers whose length or elements are known only when the graph runs."""

from __future__ import annotations

import collections
import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

INPUTS = [(torch.tensor(v),) for v in ([1, 2, 3], [1, 2], [0, 1], [2, 1, 1, 2], [2, 2], [1])]
WANTED = [1, 2]
SCORES = {(1, 2): 5.0, (0, 1): 3.0, 7: 1.0}


@dataclasses.dataclass
class Path:
    steps: list[int]
    name: str = "a"


@dataclasses.dataclass
class Point:
    x: int


def of_lists(o: Tensor) -> int:
    found = o.tolist()
    return 1 if found == WANTED else 2 if found[1:] == [] else 0


def chained(o: Tensor) -> int:
    found, other = o.tolist(), [1, 2]
    return 1 if other == found == WANTED else 0


def of_two_lengths(o: Tensor) -> tuple[Any, ...]:
    ahead, back, few = o.tolist(), o.flip(0).tolist(), o[o > 0].tolist()
    return 1 if ahead == back else 0, 1 if ahead != few else 0


def of_tuples(o: Tensor) -> int:
    found = tuple(o.tolist())
    return (1 if found == (1, 2) else 0) + (2 if list(found) != [0, 1] else 0) + (4 if found == [1, 2] else 0)


def of_kinds(o: Tensor) -> tuple[Any, ...]:
    signs, halves = (o > 1).tolist(), (o / 2).tolist()
    return 1 if signs == [False, True] else 0, 1 if halves == [0.5, 1.0] else 0


def of_nested(o: Tensor) -> tuple[Any, ...]:
    found = o.tolist()
    return 1 if [found, 1] == [[1, 2], 1] else 0, 1 if {"a": found} == {"a": [1, 2]} else 0


def of_objects(o: Tensor) -> tuple[Any, ...]:
    found = o.tolist()
    same = Path(found) == Path([1, 2])
    other = Point(o[0].item()) != Point(1)
    return 1 if same else 0, 1 if other else 0, 1 if Path(found, "b") == Path([1, 2]) else 0


def of_deques(o: Tensor) -> int:
    return 1 if collections.deque(o.tolist()) == collections.deque([1, 2]) else 0


def members(o: Tensor) -> tuple[Any, ...]:
    found, key = o.tolist(), tuple(o.tolist())
    pair = (o[0].item(), o[-1].item())
    return tuple(
        1 if each else 0 for each in (found in [[1, 2], [0, 1]], key in {(1, 2), (3,)}, pair in SCORES, key in SCORES)
    )


def entries(o: Tensor) -> tuple[Any, ...]:
    found = tuple(o.tolist())
    known = SCORES[found] + 1 if found in SCORES else 0.5
    return known, SCORES.get(tuple(o.tolist()[:2]), 0.0), SCORES.get((o[0].item(), 2), -1.0)


def places(o: Tensor) -> tuple[Any, ...]:
    wanted, found = [[0, 1], [1, 2], [0, 1]], o.tolist()
    return wanted.count(found), wanted.index(found) if found in wanted else -1


def grams(o: Tensor) -> Tensor:
    order, score = o.tolist(), torch.zeros(())
    for j in range(len(order) - 1):
        if tuple(order[j : j + 2]) in SCORES:
            score = score + SCORES[tuple(order[j : j + 2])]
    return score


def of_expressions(o: Tensor) -> tuple[Any, ...]:
    found = o.tolist()

    def hash(values: list[int]) -> list[int]:  # noqa: A001 - a name of Python's that says nothing here
        return values[:2]

    joined = ({"a": found} | {"b": 1}) == {"a": [1, 2], "b": 1}
    added = sum([found, []], []) == WANTED  # noqa: RUF017 - as people write it
    same = [(found or []) == WANTED, hash(found) == WANTED, added, joined, found == found]
    return tuple(1 if each else 0 for each in same)


def of_order(o: Tensor) -> tuple[Any, ...]:
    found, other, none = o.tolist(), o.flip(0).tolist(), list[int]()
    tests = [none < found, found < none, found > none, none <= found[1:], none >= found[1:], none == found[1:]]
    tests += [found < WANTED, found <= WANTED, found > WANTED, found >= WANTED, WANTED[:1] < found]
    tests += [found < other, found <= other, tuple(found) > (1, 1, 5), found < found]
    return tuple(1 if each else 0 for each in tests)


def of_order_within(o: Tensor) -> tuple[Any, ...]:
    found, first, last = o.tolist(), o[0].item(), o[-1].item()
    none, pair = list[int](), (first, last)
    tests = [(found, 1) < (WANTED, 0), pair <= (1, 2), (2, last, "a") < (3, last, None), [none, 2] < [found[1:], 1]]
    tests += [pair > (last, first), (first, [last]) >= (1, [2]), (0, first) < (0, first, 1)]
    tests += [1 < first < last, (1, 1) < pair < (2, 2)]
    return tuple(1 if each else 0 for each in tests)


MODELS = [
    *(of_lists, chained, of_two_lengths, of_tuples, of_kinds, of_nested, of_objects, of_deques),
    *(of_expressions, members, entries, places, grams, of_order, of_order_within),
]


@pytest.mark.slow_for("of_order", "grams")
@row(47)
@pytest.mark.parametrize("model", MODELS)
def test_elements_are_compared(model: Callable[[Tensor], Any]) -> None:
    agree(model, INPUTS, {"o": dyn(0)}, paths=1)


def set_of_lists(o: Tensor) -> int:
    return 1 if (1, 2) in {tuple(o.tolist()), (9,)} else 0


def ordered_by_function(o: Tensor) -> int:
    return 1 if operator.lt([], o.tolist()) else 0


def ordered_if_equal(o: Tensor) -> int:
    return 1 if (o[0].item(), "a") < (1, None) else 0


def of_unlike_numbers(o: Tensor) -> int:
    return 1 if o.tolist() == [1.0, 2.5] else 0


def by_function(o: Tensor) -> int:
    return 1 if operator.eq(o.tolist(), [1, 2]) else 0


@row(47)
@pytest.mark.parametrize("model", [set_of_lists, ordered_by_function, ordered_if_equal, of_unlike_numbers, by_function])
def test_what_python_would_count_is_refused(model: Callable[[Tensor], Any]) -> None:
    assert refuses(model, INPUTS[0], {"o": dyn(0)}).code == "D2S214"
