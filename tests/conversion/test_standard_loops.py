"""A loop that counts is the same in a file, whether or not it was torch's own in between."""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

import dy2st
import dy2st.onnx

ROWS = {"x": {0: torch.export.Dim("n", min=0, max=50)}}


def over_rows(x: Tensor) -> Tensor:
    h = torch.zeros(2)
    for row in x:
        h = torch.tanh(row + h)
    return h


def counted(x: Tensor) -> Tensor:
    for i in range(int(x.sum())):
        x = x * 0.5 + i
    return x


def until(x: Tensor) -> Tensor:
    for _ in range(10):
        if x.sum() > 5:
            break
        x = x + 1
    return x


def by_value(x: Tensor) -> Tensor:
    while x.sum() < 5:
        x = x + 1
    return x


def nested(x: Tensor) -> Tensor:
    for row in x:
        for i in range(int(row.sum().clamp(0, 4))):
            x = x + row[0] * i
    return x


def in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 3:
        for row in x:
            x = x + row
    return x


def whole_numbers(x: Tensor) -> Tensor:
    n = torch.zeros((), dtype=torch.int64)
    for row in x:
        n = n + (row[0] > 0).long()
    return n


def kinds(model: Any, *args: Any, **options: Any) -> Counter[str]:
    file = dy2st.onnx.export(model, *args, **options).model_proto
    return Counter(node.op_type for node in file.graph.node)


@pytest.mark.parametrize("function", [over_rows, counted, until, by_value, nested, in_an_arm, whole_numbers])
def test_by_way_of_torchs_loops(function):
    args = (torch.ones(3, 2),)
    program = dy2st.export(function, args, dynamic_shapes=ROWS)
    assert "loop" not in {str(node.target) for node in program.graph.nodes}
    assert kinds(program) == kinds(function, args, dynamic_shapes=ROWS)


def step(i: Tensor, going: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return i + 1, going.clone(), x * 0.5


def below(i: Tensor, going: Tensor, x: Tensor) -> Tensor:
    return torch.logical_and(going, i < 4)


@pytest.mark.slow
def test_loops_that_count_otherwise_are_left_alone():
    """What looks like such a loop: it starts elsewhere, its number is returned, it goes by twos, its flag is read."""
    kept, gone = torch.ones((), dtype=torch.bool), torch.zeros((), dtype=torch.int64)

    def from_one(x: Tensor) -> Tensor:
        return while_loop(below, step, (gone + 1, kept.clone(), x))[2]  # type: ignore[no-any-return]

    def by_twos(x: Tensor) -> Tensor:
        first = torch.zeros((), dtype=torch.int64)
        return while_loop(below, lambda i, g, x: (i + 2, g.clone(), x * 0.5), (first, kept.clone(), x))[2]  # type: ignore[no-any-return]

    def returned(x: Tensor) -> Tensor:
        first = torch.zeros((), dtype=torch.int64)
        i, _, x = while_loop(below, step, (first, kept.clone(), x))
        return operator.mul(x, i)

    def flagged(x: Tensor) -> Tensor:
        first = torch.zeros((), dtype=torch.int64)
        return while_loop(below, lambda i, g, x: (i + 1, g & (x.sum() > 1), x * 0.5), (first, kept.clone(), x))[2]  # type: ignore[no-any-return]

    for function in (from_one, by_twos, returned, flagged):
        assert dy2st.check(function, [(torch.ones(3),), (torch.full((3,), 8.0),)]).ok, function.__name__
