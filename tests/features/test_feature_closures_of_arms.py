"""Row 45: functions that are made in an arm or an iteration, and close over tensors of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, row
from torch import Tensor

Function = Callable[[Any], Any]


def shifted(by: Any) -> Function:
    def shift(value: Any) -> Any:
        return value + by

    return shift


def scaled(inner: Function, by: Any) -> Function:
    def scale(value: Any) -> Any:
        return inner(value) * by

    return scale


def identity(value: Any) -> Any:
    return value


def counted(first: Any) -> Function:
    count = first

    def count_on(value: Any) -> Any:
        nonlocal count
        count = count + 1
        return value + count

    return count_on


def of_one_code(x: Tensor) -> Any:
    change = shifted(x)
    if x.sum() > 0:
        change = shifted(x * 2)
    return change(x), change(1)


def one_around_the_other(x: Tensor) -> Any:
    change = identity
    if x.sum() > 0:
        change = scaled(change, x * 2)
    if x.max() > 3:
        change = scaled(shifted(x.min()), x.max())
    return change(x)


def of_an_iteration(x: Tensor) -> Any:
    change, rounds = identity, 0
    while x.sum() < 10:
        change = identity
        if x.max() > 3:
            change = scaled(change, x.max().abs() + 1)
        x = change(x) + 1
        rounds += 1
    return x, change(x), rounds


def of_numbers(x: Tensor) -> Any:
    most = x.max().item()
    change = shifted(most) if x.sum() > 0 else scaled(shifted(1.0), most)
    return change(x), change(2.0)


def by_keywords(x: Tensor) -> Any:
    def made(by: Tensor) -> Function:
        def change(value: Any, *, twice: bool = True, other: Tensor = x) -> Any:
            return (value + by) * (2 if twice else 1) + other

        return change

    change: Any = made(x)
    for _ in range(3):
        change = made(x + 1) if x.sum() > 0 else change
    return change(x), change(x, twice=False)


INPUTS = [(torch.tensor(values),) for values in ([1.0, 2.0, 0.5], [-1.0, -2.0, 0.5], [5.0, 1.0, 4.0], [-9.0, 4.0, 1.0])]


@row(45)
@pytest.mark.parametrize(
    "model",
    [of_one_code, one_around_the_other, of_an_iteration, of_numbers, by_keywords],
    ids=lambda model: model.__name__,
)
def test_what_they_close_over_goes_on_with_them(model: Callable[[Tensor], Any]) -> None:
    agree(model, INPUTS)


@row(45)
def test_a_variable_that_is_bound_anew_stays_the_functions() -> None:
    def model(x: Tensor) -> Any:
        change = counted(2)
        if x.sum() > 0:
            change = counted(5)
        return change(x) + change(x)

    agree(model, INPUTS)


@row(45)
def test_functions_that_call_themselves() -> None:
    def model(x: Tensor) -> Any:
        def halved(value: Tensor, times: int) -> Tensor:
            return value if times == 0 else halved(value / 2, times - 1) + x

        def doubled(value: Tensor, times: int) -> Tensor:
            return value if times == 0 else doubled(value * 2, times - 1)

        change = halved if x.sum() > 0 else doubled
        for _ in range(2):
            if x.max() > 3:
                change = doubled
        return change(x, 2)

    agree(model, INPUTS)
