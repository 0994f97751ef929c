"""Row 47: Python's library goes over the rows of a tensor with a dynamic size."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor


def accumulated(x: Tensor) -> Any:
    largest = torch.stack(list(itertools.accumulate(x, torch.maximum)))
    return largest, list(itertools.accumulate(x))[-1], torch.stack(list(itertools.accumulate(x, max)))


def accumulated_from(x: Tensor) -> Any:
    return torch.stack(list(itertools.accumulate(x, operator.mul, initial=x[0] * 0 + 2)))


def neighbours(x: Tensor) -> Any:
    steps = [after - before for before, after in itertools.pairwise(x)]
    return len(steps), sum((one * other for one, other in itertools.combinations(x, 2)), x[0] * 0)


def pieces(x: Tensor) -> Any:
    both = list(itertools.chain(x, x * 2))
    return torch.stack(list(itertools.islice(x, 2))), torch.stack(both), torch.stack([x[0] + 1, *x])


def reduced(x: Tensor) -> Any:
    pairs = itertools.product(x, x)
    return (
        math.prod(x, start=x[0]),
        functools.reduce(torch.minimum, x),
        sum((one * other for one, other in pairs), x[0] * 0),
    )


def latest(x: Tensor) -> Any:
    kept = collections.deque(x, maxlen=2)
    doubled = collections.deque((value * 2 for value in x), maxlen=2)
    doubled.append(x[0])
    numbers = collections.deque(x.tolist(), 2)
    return torch.stack(list(kept)), torch.stack(list(doubled)), torch.tensor(list(numbers)), len(collections.deque(x))


def chosen(x: Tensor) -> Any:
    first = list(itertools.takewhile(lambda value: value > 0, x))
    rest = list(itertools.dropwhile(lambda value: value > 0, x.tolist()))
    even = list(itertools.compress(x, x > 1.5))
    small = list(itertools.filterfalse(lambda value: value > 1, [x[0], x[1], x[0] * 2]))
    return len(first), torch.tensor(rest), len(even), len(small)


def starred(x: Tensor) -> Any:
    return torch.stack(list(itertools.starmap(torch.sub, zip(x, x * 3, strict=True))))


@row(47)
@pytest.mark.parametrize(
    "model",
    [chosen, starred, accumulated, accumulated_from, neighbours, pieces, reduced, latest],
    ids=lambda model: model.__name__,
)
def test_over_the_rows(model: Any) -> None:
    rows = [[1.0, 3.0, -1.0, 2.0, 5.0], [2.0, -3.0, 1.0], [2.0, 4.0]]
    agree(model, [(torch.tensor(row),) for row in rows], {"x": dyn(0)}, paths=1)


@row(47)
def test_what_is_not_converted_is_refused() -> None:
    def cycled(x: Tensor) -> Any:
        return next(itertools.cycle(x))

    def joined(x: Tensor) -> Any:
        return list(itertools.zip_longest(x, x[1:]))

    for model in (cycled, joined):
        assert refuses(model, (torch.tensor([1.0, -2.0]),), {"x": dyn(0)}).code == "D2S242"


def repeated(x: Tensor) -> Tensor:
    return torch.repeat_interleave(torch.arange(3.0), x) * 2


@row(47)
def test_a_count_below_zero() -> None:
    """Eager raises, also where the sum of all counts is none below zero."""
    rows = [[1, 2, 3], [0, 4, 0], [0, 0, 0]]
    raising = [(torch.tensor(row),) for row in ([2, -1, 2], [-1, 0, 3])]
    agree(repeated, [(torch.tensor(row),) for row in rows], paths=1, raising=raising)


def divisors(x: Tensor) -> Any:
    common, multiple = 0, 1
    for value in x.tolist():
        common = math.gcd(common, value)
        multiple = math.lcm(multiple, value)
    return common, multiple, math.gcd(int(x[0]), int(x[-1]), 12), math.gcd(), math.gcd(4, 6)


def divisors_of_tensors(x: Tensor) -> Any:
    """Numbers of a narrow dtype give Python's."""
    x = x.to(torch.int32)
    return math.gcd(x[0], x[-1]), math.lcm(x[0], x[-1]), operator.index(x[0]) * 2**40


@row(47)
def test_common_divisors() -> None:
    rows = [[4, 6, 10], [9, 27], [-8, 12, 20], [5, 0], [7]]
    for model in (divisors, divisors_of_tensors):
        agree(model, [(torch.tensor(row),) for row in rows], {"x": dyn(0)}, paths=1)
