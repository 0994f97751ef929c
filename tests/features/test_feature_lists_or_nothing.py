"""Rows 13, 24 and 26: a list of data-dependent length that is there on one path only, or is another thing there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

from dy2st.errors import DifferentObjectsError, DifferentStructureError

INPUTS = [(torch.tensor(each),) for each in ([1.0, 1.5, 3.0, 1.0], [1.0, 0.7, 1.0, 4.0, 1.0], [1.5, 1.0])]


@dataclass
class Point:
    """A place and its score."""

    place: int
    score: float


def _path(x: Tensor) -> list[Point] | None:
    """What lies before the first great element; nothing, where there is none."""
    path = []
    for i in range(x.shape[0]):
        if x[i] > 2:
            break
        path.append(Point(i, x[i].item()))
    else:
        return None
    return path[::-1]


USES: dict[str, Callable[[Any], Any]] = {
    "attributes": lambda path: torch.tensor([p.score for p in path]).sum(),
    "counted": lambda path: sum(1 for _ in path),
    "two clauses": lambda path: torch.tensor([p.score * q.place for p in path for q in path]).sum(),
    "condition": lambda path: len([p for p in path if p.score > 1]),
    "any": lambda path: any(p.score > 1.2 for p in path),
    "greatest": lambda path: max(path, key=lambda p: p.score).place,
    "joined": lambda path: len([Point(0, 0.0)] + path * 2),
    "shown": lambda path: len([Point(0, 0.0), *path]),
    "handed over": lambda path: _count(*path),
}


def _count(*values: Any) -> int:
    return len(values)


@row(13, 24, 26)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_is_done_with_a_list_that_may_be_none(use: Callable[[Any], Any]) -> None:
    def model(x: Tensor) -> Tensor:
        path = _path(x)
        if path is None:
            return x.sum()
        return x.sum() + use(path)

    agree(model, INPUTS, (dyn(0),))


@row(13, 26)
def test_a_list_that_may_be_none_is_unpacked_and_extends_another() -> None:
    def model(x: Tensor) -> Tensor:
        path = _path(x)
        if path is None:
            return x.sum()
        first, *others = path
        made = [first]
        made.extend(path)
        made += path
        return x.sum() + first.score + len(others) + 10 * len(made)

    agree(model, INPUTS, (dyn(0),))


@row(26)
def test_a_comprehension_over_a_list_or_a_dict_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        found: Iterable[Any] = {1: 2} if x.sum() > 5 else [v * 2 for v in x if v > 1]
        return x.sum() + sum(1 for _ in found)

    assert isinstance(refuses(model, INPUTS[0], (dyn(0),)), DifferentObjectsError)


@row(26)
def test_a_tuple_of_data_dependent_length_or_of_one_element() -> None:
    """As long as rows that stand for several elements make it, and not as what stands in it."""

    def model(x: Tensor) -> Tensor:
        found = [v * 2 for v in x if v > 1]
        either = tuple(found) if x.sum() > 5 else (x.sum(),)
        last = (0,)
        for _ in x:
            last = tuple(found)  # type: ignore[assignment]
        return x.sum() + len(either) + len(tuple({1: 2} if x.sum() > 7 else found)) + len(last)

    agree(model, [*INPUTS, (torch.tensor([]),)], (dyn(0),), paths=4)


@row(26)
def test_two_tuples_of_data_dependent_length_are_refused_in_their_own_words() -> None:
    def model(x: Tensor) -> Tensor:
        found = [v * 2 for v in x if v > 1]
        either = tuple(found) if x.sum() > 5 else tuple(found[1:])
        return x.sum() + len(either)

    assert isinstance(refuses(model, INPUTS[0], (dyn(0),)), DifferentStructureError)


PARTS: dict[str, Callable[[Any], Any]] = {
    "slices": lambda found: sum(a * b for a, b in zip(found[:-1], found[1:], strict=True)),  # noqa: RUF007
    "an element": lambda found: found[0],
    "the length": len,
    "a method": lambda found: found.index(2),
}


@row(26, 47)
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_squeezed_indices_are_a_list_unless_there_is_one(part: Callable[[Any], Any]) -> None:
    """Of one element ``squeeze`` makes a number, which has no elements: eager raises, and so does the program."""

    def model(x: Tensor) -> Tensor:
        found = x.nonzero().squeeze().tolist()
        return x.sum() + part(found)

    inputs = [(torch.tensor(each),) for each in ([1.0, 0.0, 3.0, 1.0], [0.0, 1.0, 1.0])]
    agree(model, inputs, (dyn(0),), paths=1, raising=[(torch.tensor([0.0, 0.0, 1.0]),)])
