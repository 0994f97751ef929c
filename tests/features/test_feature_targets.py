"""Row 24: a list of data-dependent length, or a tensor with a dynamic size, that is unpacked into targets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

import dy2st


def _vectors(*rows: list[float]) -> list[tuple[Tensor]]:
    return [(torch.tensor(row),) for row in rows]


def one(x: Tensor) -> Any:
    (found,) = [value for value in x if value > 0]
    return found * 2


def pair(x: Tensor) -> Any:
    found = []
    for value in x:
        if value > 0:
            found.append((value, value * 2))  # noqa: PERF401 - as users write it
    (a, b), [c, d] = found
    return a * d - b + c


def numbers(x: Tensor) -> Any:
    kept = x[x > 0].tolist()
    low, high = kept
    return x * low + high


def rows(x: Tensor) -> Any:
    first, second = x[x > 0]
    return first - second


def places(x: Tensor) -> Any:
    ((start,), (end,)) = torch.nonzero(x > 0)
    return x[start] + end


@row(24)
@pytest.mark.parametrize("model", [one, pair, numbers, rows, places], ids=lambda model: model.__name__)
def test_as_many_targets_as_values(model: Any) -> None:
    few = [[1.0, -1.0], [-2.0, -1.0, 3.0], [4.0]]
    two = [[1.0, -1.0, 2.0], [3.0, 1.0], [-1.0, 7.0, -5.0, -4.0, 6.0]]
    right, wrong = (few, two) if model is one else (two, few)
    none = _vectors([-1.0, -2.0], [1.0, 2.0, 3.0])
    agree(model, _vectors(*right), {"x": dyn(0)}, paths=1, raising=[*none, *_vectors(*wrong)[:1]])


def pairs(x: Tensor) -> Any:
    (i, a), (j, b) = enumerate(x * 2)
    k, m = range(x.shape[0])
    p, q = zip(x, x.exp(), strict=True)
    return a * i - b * j, p[0] * q[1] + x[k] - x[m]


def entries(x: Tensor) -> Any:
    found = {}
    for value in x:
        found[int(value)] = value * 2
    (first, a), (second, b) = found.items()
    return first * b - second * a


def pieces(x: Tensor) -> Any:
    a, b = x.split(1)
    return a - b


@row(24)
@pytest.mark.parametrize("model", [pairs, entries, pieces], ids=lambda model: model.__name__)
def test_other_iterables(model: Any) -> None:
    given = _vectors([1.0, 2.0], [5.0, -3.0], [0.0, 7.0])
    agree(model, given, {"x": dyn(0)}, paths=1, raising=_vectors([1.0, 2.0, 3.0]))
    program = dy2st.export(model, given[0], dynamic_shapes={"x": dyn(0)})
    with pytest.raises((RuntimeError, AssertionError)):  # whatever is missing first
        program.module()(torch.tensor([2.0]))


def columns(x: Tensor) -> Any:
    found = [(place, value, "kept") for place, value in enumerate(x) if value > 0]
    places, values, _ = zip(*found, strict=True)
    rows = [[float(value), float(value) * 2] for value in x]
    turned = list(map(list, zip(*rows, strict=True)))
    return torch.tensor(places, dtype=torch.int64), torch.stack(values), torch.tensor(turned), len(list(zip(*found)))  # noqa: B905


@row(24)
def test_columns_of_rows() -> None:
    given = _vectors([1.0, 2.0], [-5.0, 3.0], [4.0])
    agree(columns, given, {"x": dyn(0)}, paths=1)
    program = dy2st.export(columns, given[0], dynamic_shapes={"x": dyn(0)})
    with pytest.raises(RuntimeError, match="exported for zip"):
        program.module()(torch.tensor([-1.0]))


def of_one_length(x: Tensor) -> Any:
    above, below = [value for value in x if value > 0], [value for value in x if value <= 0]
    return sum([one - other for one, other in zip(above, below, strict=True)], x[0])


@row(24)
def test_lists_of_one_length() -> None:
    given = _vectors([1.0, -2.0], [-5.0, 3.0, 2.0, -1.0])
    agree(of_one_length, given, {"x": dyn(0)}, paths=1, raising=_vectors([-1.0, 1.0, 1.0], [-1.0, -2.0, 1.0]))


def nested(x: Tensor) -> Any:
    (first, *rest), total = [value for value in x if value > 0], x.sum()
    return first + len(rest), total


@row(24)
def test_targets_in_brackets() -> None:
    agree(nested, _vectors([1.0, 2.0], [-5.0, 3.0]), {"x": dyn(0)}, paths=1, raising=_vectors([-1.0]))


def head(x: Tensor) -> Any:
    first, *rest = [value for value in x if value > 0]
    return first + len(rest), first + sum(rest)


def ends(x: Tensor) -> Any:
    found = [value * 2 for value in x if value > 0]
    first, *_, last = found
    return first, last, len(found)


def tail(x: Tensor) -> Any:
    *front, last = [value * 2 for value in x if value > 0]
    front.append(last + 1)
    return torch.stack(front)


@row(24)
@pytest.mark.parametrize("model", [head, ends, tail], ids=lambda model: model.__name__)
def test_a_target_with_a_star(model: Any) -> None:
    given = [[1.0, -1.0, 2.0], [3.0, 1.0, 5.0], [-1.0, 7.0, -5.0, -4.0, 6.0]]
    few = [[-1.0], [1.0]] if model is ends else [[-1.0]]
    agree(model, _vectors(*given), {"x": dyn(0)}, paths=1, raising=_vectors(*few))


def caught(x: Tensor) -> Any:
    try:
        a, b = [value for value in x if value > 0]
    except ValueError:
        return x.sum()
    return a * 2 - b


def in_a_loop(x: Tensor) -> Any:
    total = x.new_zeros(())
    for value in x:
        if value > 0:
            (same,) = [other for other in x if other == value]
            total = total + same
    return total


@row(24)
def test_another_number_of_values() -> None:
    agree(caught, _vectors([1.0, 2.0], [1.0, -2.0], [3.0, 2.0, 5.0]), {"x": dyn(0)})
    agree(in_a_loop, _vectors([1.0, 2.0], [-1.0], [-1.0, -1.0, 5.0]), {"x": dyn(0)}, raising=_vectors([1.0, 1.0]))


def most_common(x: Tensor) -> Any:
    ((value, count),) = Counter(x.tolist()).most_common(1)
    return value, count


@row(24)
def test_the_most_common_one() -> None:
    given = [(torch.tensor(row),) for row in ([1, 2, 2, 3, 3, 3], [7], [5, 4, 4, 5])]
    agree(most_common, given, {"x": dyn(0)}, paths=1)


def of_one_list(x: Tensor) -> Any:
    found = a, b = [value for value in x if value > 0]
    return a - b, len(found)


@row(24)
def test_what_is_assigned_to_something_else_too() -> None:
    assert refuses(of_one_list, (torch.tensor([1.0, 2.0]),), {"x": dyn(0)}).code == "D2S214"
