"""What no journal records (rows 50, 54): random numbers, arrays, texts in memory. Refused on some paths."""

from __future__ import annotations

import decimal
import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor
from torch.export import Dim

INPUTS = [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, 0.5, 0.5], [2.0, 2.5, -1.0, 0.5], [3.0, -3.0, 0.25])]
DYNAMIC = ({0: Dim.DYNAMIC},)
GENERATOR = random.Random(3)


@row(54)
def test_random_numbers_of_python_and_numpy() -> None:
    def plain(x: Tensor) -> Any:
        return x + random.random()

    def array(x: Tensor) -> Any:
        return x + float(np.random.default_rng().random())

    def held(x: Tensor) -> Any:
        return x * GENERATOR.choice([1, 2])

    for model in (plain, array, held):
        assert refuses(model, INPUTS[0], DYNAMIC).code == "D2S251"

    def loop(x: Tensor) -> Any:
        own = random.Random(0)
        total = x[0] * 0
        for e in x:
            total = total + e * own.random()
        return total

    def arm(x: Tensor) -> Any:
        own = np.random.RandomState(0)
        if x.sum() > 0:
            own.rand()
        return x

    for model in (loop, arm):
        assert refuses(model, INPUTS[0], DYNAMIC).code == "D2S226"

    def seeded(x: Tensor) -> Any:
        own = random.Random(0)
        order = [0, 1, 2]
        own.shuffle(order)
        return x[order[0]] * own.uniform(0, 1), order

    agree(seeded, INPUTS, DYNAMIC, paths=1)


@row(54)
def test_texts_in_memory_written_on_one_path_are_refused() -> None:
    def writes(x: Tensor) -> Any:
        text = io.StringIO()
        if x.sum() > 0:
            text.write("positive")
        return len(text.getvalue())

    def reads(x: Tensor) -> Any:
        text = io.StringIO("1\n2\n3\n4\n5")
        total = x[0] * 0
        for e in x:
            total = total + e * float(text.readline())
        return total

    for model in (writes, reads):
        assert refuses(model, INPUTS[0], DYNAMIC).code == "D2S226"


def filled(x: Tensor) -> Any:
    table = np.zeros(3)
    if x.sum() > 0:
        table.fill(2)
    return x[0] + float(table[0])


def sorted_in_place(x: Tensor) -> Any:
    table = np.array([3.0, 1.0, 2.0])
    if x.sum() > 0:
        table.sort()
    return x[0] + float(table[0])


def copied_to(x: Tensor) -> Any:
    table = np.zeros(3)
    if x.sum() > 0:
        np.copyto(table, np.ones(3))
    return x[0] + float(table[0])


def given_as_out(x: Tensor) -> Any:
    table = np.zeros(3)
    if x.sum() > 0:
        np.add(table, 1, out=table)
    return x[0] + float(table[0])


def augmented(x: Tensor) -> Any:
    table, other = np.zeros(3), np.ones(3)
    if x.sum() > 0:
        table += other
    return x[0] + float(table[0])


def by_a_number(x: Tensor) -> Any:
    table = np.zeros(3)
    if x.sum() > 0:
        table += 1
    return x[0] + float(table[0])


def behind_a_break(x: Tensor) -> Any:
    table = np.ones(3)
    for i in range(3):
        if x.sum() > i:
            break
        table /= 2
    return x[0] + float(table[0])


def in_a_loop(x: Tensor) -> Any:
    table = np.ones(3)
    for e in x:
        if e > 0:
            table *= 3
    return x[0] + float(table[0])


def of_c(x: Tensor) -> Any:
    context = decimal.getcontext().copy()
    if x.sum() > 0:
        context.prec = 3
    return x * context.prec


@row(50, 54)
@pytest.mark.parametrize(
    "model",
    [
        filled,
        sorted_in_place,
        copied_to,
        given_as_out,
        augmented,
        by_a_number,
        behind_a_break,
        in_a_loop,
        of_c,
    ],
    ids=lambda model: model.__name__,
)
def test_what_no_journal_sees_is_refused(model: Callable[[Tensor], Any]) -> None:
    assert refuses(model, INPUTS[0], DYNAMIC).code == "D2S226"


@row(50)
def test_arrays_that_are_only_read_under_a_condition() -> None:
    def model(x: Tensor) -> Any:
        table = np.array([3.0, 1.0, 2.0])
        if x.sum() > 0:
            return x * float(table.max()) + float(np.add(table, 1)[0])
        return x - float(np.sort(table)[0])

    agree(model, INPUTS, DYNAMIC)
