"""Rows 24 and 25: lists whose elements are numbers of several types, tensors without dimensions and constants."""

# ruff: noqa: PERF401, PERF402, SIM108 - the constructs under test are written as users write them
from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, agree_or_refuse, row, scalars
from torch import Tensor

VALUES = scalars(-3.0, -0.5, 0.0, 0.5, 2.0, 5.0, 40.0)


def _bracket(x: Tensor) -> Any:
    before, now = 0, 1.5
    steps = 0
    while steps < 6:
        if x * now > 8:
            bracket = [before, now]
            break
        if x * now < -1:
            bracket = [now]
            break
        before = now
        now = now * 2.0
        steps += 1
    else:
        bracket = [0, now]
    low, high = (0, 1) if x > 0 else (-1, 0)
    rounds = 0
    while rounds < 3:
        if x > rounds:
            bracket[high] = bracket[low] + 0.25
        else:
            bracket[low] = rounds
        rounds += 1
    return x + bracket[0] + 2 * bracket[-1], len(bracket)


@pytest.mark.slow
@row(24)
def test_the_ends_of_a_bracket() -> None:
    agree(_bracket, VALUES)


def _extremes(x: Tensor) -> Any:
    found = [1]
    if x > 0:
        found.append(x.item() * 0.5)
    if x > 3:
        found.append(2)
    return x + max(found), x - min(found), len(found)


@row(24)
def test_extremes_of_ints_and_floats() -> None:
    agree(_extremes, VALUES)


def _names(x: Tensor) -> Any:
    found = ["begun"]
    if x > 0:
        found.append("positive")
    if x > 3:
        found.append("large")
    last = found[-1]
    score = 1 if last == "begun" else 2 if last == "positive" else 3
    return x * score, len(found), "large" in found, found.count("begun")


@row(24)
def test_names_by_path() -> None:
    agree(_names, VALUES)


def _maybe(x: Tensor) -> Any:
    found: list[Any] = []
    for i in range(4):
        if x > i:
            found.append(None if x > 2 * i else x * i)
    total = x * 0
    for each in found:
        if each is None:
            total = total + 1
        else:
            total = total + each
    return total, len(found)


@row(24)
def test_tensors_and_none() -> None:
    agree(_maybe, VALUES)


def _dtypes(x: Tensor) -> Any:
    found: list[Any] = [x.double()]
    if x > 0:
        found.append(x)
    if x > 1:
        found.append(x.to(torch.int64))
    last = found[-1]
    found[0] = last
    return x + last.float(), (found[0] * 2).float(), len(found)


@row(24)
def test_tensors_of_several_dtypes() -> None:
    agree_or_refuse(_dtypes, VALUES)


def _sorted(x: Tensor) -> Any:
    found: list[Any] = [3, 0.5]
    if x > 0:
        found.append(x.item())
    if x > 1:
        found.insert(1, 2)
    found.sort()
    first = found.pop(0)
    return x + first, x * found[-1], len(found)


@row(24)
def test_order_and_removal() -> None:
    agree(_sorted, VALUES)


def _pairs(x: Tensor) -> Any:
    found: list[Any] = [(0, "a")]
    i = 0
    while i < 4 and x > i:
        found.append((i * 0.5 if x > 2 else i, "b" if x > 2 * i else "c"))
        i += 1
    value, name = found[-1]
    return x + value, x * (1 if name == "a" else 2 if name == "b" else 3), len(found)


@row(24)
def test_pairs_of_kinds() -> None:
    agree(_pairs, VALUES)


def _as_tensor(x: Tensor) -> Any:
    found: list[Any] = [1]
    while len(found) < 5 and x > len(found):
        found.append(len(found) * 0.5)
    return torch.tensor(found, dtype=torch.float32).sum() + x


@row(24)
def test_a_tensor_of_a_said_dtype() -> None:
    agree(_as_tensor, VALUES)


def _of_unsaid_dtype(x: Tensor) -> Any:
    found: list[Any] = [1]
    while len(found) < 5 and x > len(found):
        found.append(len(found) * 0.5)
    return torch.tensor(found).sum() + x


def _returned(x: Tensor) -> Any:
    found: list[Any] = [1]
    while len(found) < 5 and x > len(found):
        found.append(len(found) * 0.5)
    return found


def _stacked(x: Tensor) -> Any:
    found: list[Any] = [x]
    while len(found) < 5 and x > len(found):
        found.append(x.double())
    return torch.stack(found).sum()


def _written(x: Tensor) -> Any:
    a = x.clone()
    found: list[Any] = [a, 1]
    if x > 0:
        found.append(2.5)
    found[0 if x > 1 else 1] = x.double()
    first = found[0]
    a.add_(1)
    return first * 1.0, a


@row(24)
@pytest.mark.parametrize("function", [_of_unsaid_dtype, _returned, _stacked, _written])
def test_what_depends_on_the_kinds_is_refused(function: Any) -> None:
    agree_or_refuse(function, VALUES)


def _marked(x: Tensor) -> Any:
    rows: list[Any] = []
    for value in x.tolist():
        for step in range(int(value)):
            rows.append(step)
        rows.append(None)
    return len(rows), rows[-1] is None


@row(24)
def test_a_list_that_is_extended_by_rows_and_by_another_kind() -> None:
    agree(_marked, [(torch.tensor(v),) for v in ([2.0, 0.0, 1.0], [0.0], [3.0])], ({0: torch.export.Dim.DYNAMIC},))
