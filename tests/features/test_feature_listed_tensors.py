"""Lists of Python numbers that are made of a tensor, and what folds a sequence: ``tolist``, ``functools.reduce``."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

# Pairs: with one that occurs again, one pair, and with one that occurs again at the start.
PAIRS = [
    (torch.tensor(rows),) for rows in ([[0, 1], [5, 2], [5, 2], [3, 9]], [[1, 2]], [[4, 4], [4, 4], [1, 0], [0, 7]])
]


def unpacked(pairs: Tensor) -> Any:
    found = []
    for a, b in pairs.tolist():
        found.append(a * 10 + b)
    return torch.tensor(found, dtype=torch.int64), pairs.tolist()[0][1], len(pairs.tolist())


def nested(pairs: Tensor) -> Any:
    number = 0
    for pair in pairs.tolist():
        for value in pair:
            number = number * 3 + value
    return number


def made_again(pairs: Tensor) -> Any:
    rows = pairs.tolist()
    larger = torch.tensor([[v + 1 for v in pair] for pair in rows], dtype=torch.int64)
    return torch.tensor([max(pair) for pair in rows], dtype=torch.int64), larger.view(-1, 2)


def in_order(pairs: Tensor) -> Any:
    rows = sorted(pairs.tolist(), key=lambda pair: -pair[1])
    rows.append([9, 9])
    rows.insert(0, rows.pop())
    return torch.tensor(rows, dtype=torch.int64).view(-1, 2), [a for a, _ in rows]


def of_other_dtypes(pairs: Tensor) -> Any:
    total, some = 0.0, 0
    for first, second in (pairs.float().view(-1, 1, 2) / 3).expand(-1, 2, -1).tolist():
        total = total * 2 + first[0] - second[1]
    for left, right in (pairs > 2).tolist():
        if left and not right:
            some += 1
    return total, some


@row(47, 59)
@pytest.mark.parametrize("model", [unpacked, nested, made_again, in_order], ids=lambda model: model.__name__)
def test_rows_as_lists(model: Callable[[Tensor], Any]) -> None:
    agree(model, PAIRS, (dyn(0),))


def returned_early(pairs: Tensor) -> Any:
    for i, (a, b) in enumerate(pairs.tolist()):
        if a > 2:
            return a * b + i
    return -1


def without_repeats(pairs: Tensor) -> Any:
    found: list[list[int]] = []
    for pair in pairs.tolist():
        if pair in found:
            continue
        found.append(pair)
    return torch.tensor(found, dtype=torch.int64).view(-1, 2)


@row(47, 59)
@pytest.mark.parametrize("model", [returned_early, without_repeats, of_other_dtypes], ids=lambda model: model.__name__)
def test_rows_as_lists_on_paths(model: Callable[[Tensor], Any]) -> None:
    agree(model, PAIRS, (dyn(0),), paths=2)


@row(47)
def test_a_row_that_may_be_shared_is_not_written_to() -> None:
    def model(pairs: Tensor) -> Any:
        rows = pairs.tolist()
        for pair in rows:
            pair[0] = pair[0] * 2
        return rows

    assert refuses(model, PAIRS[0], (dyn(0),)).code == "D2S222"


@row(47)
def test_rows_of_dynamic_length_are_refused() -> None:
    assert refuses(lambda x: x.tolist(), (torch.zeros(3, 4),), (dyn(0, 1),)).code == "D2S242"


VECTORS = [(torch.tensor(v),) for v in ([0.5, -1.0, 2.0, 3.0, -4.0], [-0.5, 1.0], [2.0, 1.0, 3.0])]


def listed(x: Tensor) -> Any:
    return functools.reduce(lambda a, b: a * 2 + b, [x[i] for i in range(x.shape[0])])


def begun(x: Tensor) -> Any:
    return functools.reduce(torch.add, [v for v in x if v > 0], torch.zeros(()))


def of_tensors(x: Tensor) -> Any:
    rows = [x[:2]]
    for v in x:
        rows.append(x[:2] * v)  # noqa: PERF401
    return functools.reduce(torch.maximum, rows), functools.reduce(lambda a, b: a - b, x)


def of_tuples(x: Tensor) -> Any:
    return functools.reduce(lambda so_far, v: (so_far[0] + v, so_far[1] + 1), x.tolist(), (0.0, 0))


def of_iterators(x: Tensor) -> Any:
    weighed = functools.reduce(lambda total, at: total + at[0] * at[1], enumerate(x), x.new_zeros(()))
    paired = functools.reduce(lambda total, both: total + both[0] * both[1], zip(x, x.flip(0), strict=True), 0.0)
    return weighed, paired, functools.reduce(operator.mul, (v * 2 for v in x), 1.0)


def of_python(x: Tensor) -> Any:
    applied = functools.reduce(lambda value, function: function(value), [torch.relu, torch.exp], x)
    return applied, functools.reduce(operator.mul, [2, 3, x.shape[0]])


@row(47, 24)
@pytest.mark.parametrize(
    "model", [listed, begun, of_tensors, of_tuples, of_iterators], ids=lambda model: model.__name__
)
def test_reduce(model: Callable[[Tensor], Any]) -> None:
    agree(model, VECTORS, (dyn(0),))


@row(47)
def test_reduce_of_pythons_own() -> None:
    agree(of_python, VECTORS, (dyn(0),), paths=1)


@row(47, 24)
def test_reduce_with_paths() -> None:
    def model(x: Tensor) -> Any:
        return functools.reduce(lambda a, b: a if a > b else b * 2, [v for v in x if v > -3])

    agree(model, VECTORS, (dyn(0),), paths=2)


@row(47)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_next_of_each_short_float(dtype: torch.dtype) -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        return torch.nextafter(x.to(dtype), y.to(dtype)).float()

    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype).float()
    far = torch.full_like(every, float("inf"))
    agree(model, [(every, other) for other in (every.flip(0), every + 1, far, -far)], paths=1)
