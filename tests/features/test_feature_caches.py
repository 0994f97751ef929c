"""Functions with a cache: run once for calls that are alike, so they give one object and change state once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor
from torch.export import Dim

import dy2st

INPUTS = [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, 0.5, 0.25], [2.0, 2.5, -1.0, 0.5])]
DYNAMIC = ({0: Dim.DYNAMIC},)


class Scale:
    """Methods with caches."""

    def __init__(self, weight: Any) -> None:
        self.weight = weight
        self.calls = 0

    @functools.cache  # noqa: B019
    def by(self, n: int) -> Any:
        """May be of the graph."""
        return self.weight * n

    @functools.cache  # noqa: B019
    def counted(self, n: int) -> int:
        """Changes its object."""
        self.calls += 1
        return n + 1


@functools.cache
def fibonacci(n: int) -> int:
    """Calls itself."""
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.lru_cache
def doubled(x: Tensor) -> Tensor:
    """Of a tensor."""
    return x * 2


@functools.lru_cache
def pair(x: Tensor, c: int = 1) -> list[Tensor]:
    """A list that whoever asks again gets again."""
    return [x * c, x]


def numbers(x: Tensor) -> Tensor:
    y = x[0] * fibonacci(10)
    for e in x:
        if e > 0:
            y = y + fibonacci(5) * e
    return y + Scale(3).by(2)


def tensors(x: Tensor) -> tuple[Tensor, bool]:
    scale = Scale(x)
    y = scale.by(2).sum()
    for e in x:
        y = y + scale.by(3)[0] * e
    return (y if x.sum() > 1 else scale.by(2)[1]), scale.by(2) is scale.by(2)


def written_to(x: Tensor) -> Tensor:
    first = doubled(x)
    second = doubled(x)
    second += 3
    return first


def lists(x: Tensor) -> tuple[Any, ...]:
    kept = pair(x)
    for e in x:
        if e > 0:
            pair(x)[0] = pair(x)[0] + e
    if x.sum() > 1:
        pair(x).append(x[0])
    return kept[0], len(kept), pair(x, c=2)[0]


def around(x: Tensor) -> tuple[Any, ...]:
    held = {0: x[0]}

    @functools.cache
    def item(i: int) -> Any:
        return held.get(i, x[2])

    if x.sum() > 1:
        held[1] = x[1]
    first = item(0), item(1)
    held[0] = x[2]
    return *first, item(0)


def in_python_loops(x: Tensor) -> Tensor:
    y = x[0]
    for i in range(3):
        if i == 2:
            break
        doubled(x).add_(i)
        y = y + doubled(x)[1]
    return y + doubled(x)[0]


@row(40)
@pytest.mark.parametrize(
    "model", [numbers, tensors, written_to, lists, around, in_python_loops], ids=lambda model: model.__name__
)
def test_what_a_cache_gives(model: Callable[[Tensor], Any]) -> None:
    agree(model, INPUTS, DYNAMIC, paths=1)


def a_tensor(x: Tensor) -> Tensor:
    if x.sum() > 1:
        doubled(x).add_(1)
    return doubled(x)


def a_tensor_by_path(x: Tensor) -> Tensor:
    y = doubled(x) if x.sum() > 1 else x + 1
    y += 1
    return y + doubled(x)


def a_list(x: Tensor) -> Tensor:
    if x.sum() > 1:
        pair(x)[0] = x * 5
    return pair(x)[0]


def a_list_by_path(x: Tensor) -> Tensor:
    y = pair(x) if x.sum() > 1 else [x, x + 1]
    y[0] = x * 5
    return pair(x)[0] + y[0]


def in_a_loop(x: Tensor) -> Tensor:
    y = x * 2
    for e in x:
        pair(x)[0] = pair(x)[0] + e
        y = y + pair(x)[0]
    return y


@row(40)
@pytest.mark.parametrize(
    "model", [a_tensor, a_tensor_by_path, a_list, a_list_by_path, in_a_loop], ids=lambda model: model.__name__
)
def test_changes_of_what_one_path_has_cached_are_refused(model: Callable[[Tensor], Tensor]) -> None:
    assert refuses(model, INPUTS[0], DYNAMIC).code in ("D2S221", "D2S222")


@row(40)
def test_state_is_changed_once() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, int]:
        scale = Scale(2)
        asked = 0

        @functools.cache
        def ask(n: int) -> int:
            nonlocal asked
            asked += 1
            return n

        y = x * scale.counted(1) * ask(3)
        y = y + scale.counted(1) + ask(3) + ask(4)
        return (y if x.sum() > 1 else -y), scale.calls, asked

    agree(model, INPUTS, DYNAMIC)


TOTAL = [0]
BUFFER = torch.zeros(2)


@functools.cache
def tallied(n: int) -> int:
    """Changes a global."""
    TOTAL[0] += n
    return n


@functools.cache
def written(n: int) -> int:
    """Writes to a tensor."""
    BUFFER.add_(n)
    return n


def of_a_global(x: Tensor) -> Tensor:
    if x.sum() > 1:
        tallied(2)
    return x + TOTAL[0]


def of_a_tensor(x: Tensor) -> Tensor:
    if x.sum() > 1:
        written(2)
    return x + BUFFER[0]


def of_its_object(x: Tensor) -> Tensor:
    scale = Scale(2)
    for e in x:
        if e > 0:
            scale.counted(1)
    return x + scale.calls


def of_a_tensors_call(x: Tensor) -> Tensor:
    scale = Scale(x)
    scale.counted(1)
    scale.counted(1)
    return x + scale.calls


def of_a_variable(x: Tensor) -> Tensor:
    asked = 0

    @functools.cache
    def ask(n: int) -> int:
        nonlocal asked
        asked += 1
        return n

    if x.sum() > 1:
        ask(3)
    return x + asked + ask(3)


@row(40)
@pytest.mark.parametrize(
    "model",
    [of_a_global, of_a_tensor, of_its_object, of_a_tensors_call, of_a_variable],
    ids=lambda model: model.__name__,
)
def test_state_that_a_call_may_find_changed_is_refused(model: Callable[[Tensor], Tensor]) -> None:
    TOTAL[0] = 0
    BUFFER.zero_()
    tallied.cache_clear()
    written.cache_clear()
    error = refuses(model, INPUTS[0], DYNAMIC)
    assert error.code == "D2S226"
    assert "has a cache and changes state around it" in str(error)


class Halving:
    """A method with a cache, of Python's numbers alone."""

    @functools.cache  # noqa: B019
    def of(self, n: int) -> float:
        """Half of it."""
        return n / 2


@functools.cache
def three() -> int:
    """Takes nothing."""
    return 3


@row(68)
def test_functions_with_a_cache_while_ways_are_counted() -> None:
    halving = Halving()

    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * halving.of(4)
        return x - halving.of(x.dim()) * three()

    report = dy2st.check(model, [(torch.ones(2),), (-torch.ones(2),)])
    assert (report.outcome, report.covered) == ("equal", True)
