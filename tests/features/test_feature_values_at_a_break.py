"""A variable that is a list in a loop and becomes something else right before the loop is left, or the reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, row
from torch import Tensor

INPUTS = [(torch.full((3,), each),) for each in (0.1, 1.0, 5.0, -1.0)]


def put_together(x: Tensor) -> Tensor:
    outs: Any = []
    steps = 0
    while True:
        steps += 1
        outs += [x * steps]
        if x.sum() * steps > 10 or steps >= 5:
            outs = torch.cat(outs)
            break
    return outs


def in_a_while(x: Tensor) -> Tensor:
    found: Any = []
    x = x + 0.5
    while x.sum() < 100:
        found.append(x)
        x = x * 2
        if x.max() > 20:
            found = torch.stack(found).sum(0)
            break
    return found if isinstance(found, Tensor) else x * 3


def in_a_for(x: Tensor) -> Tensor:
    kept: Any = [x, x * 2]
    for i in range(6):
        x = x + i
        if x.sum() > 9:
            kept = kept[0] + x
            break
    return kept if isinstance(kept, Tensor) else kept[1] - x


def continued(x: Tensor) -> tuple[Tensor, Any]:
    outs: Any = []
    before: Any = None
    step = 0
    while True:
        step += 1
        outs += [x * step]
        last = outs[-1]
        before = last if before is None else before + last
        if int(sum(last > 3)) > 0 or step >= 5:
            if step < 2:
                continue
            outs = torch.cat(outs)
            break
    return outs * 2, before


def of_a_loop_around(x: Tensor) -> Tensor:
    total = x * 0
    for _ in range(2):
        rows: Any = []
        while True:
            rows.append(x)
            x = x + 1
            if x.sum() > 12:
                rows = torch.stack(rows).mean(0)
                break
        total = total + rows
        x = x - 4
    return total


def becomes_a_list(x: Tensor) -> Tensor:
    best: Any = x
    while True:
        best = best + x.abs() + 1
        if best.sum() > 20:
            best = [best, best * 2]
            break
    return best[0] - best[1].mean()


def becomes_a_dict(x: Tensor) -> Tensor:
    state: Any = (x, x.sum())
    for _ in range(4):
        state = (state[0] + 1, state[1] * 2)
        if state[1] > 10:
            state = {"x": state[0], "s": state[1]}
            break
    return state["x"] * state["s"] if isinstance(state, dict) else state[0] + state[1]


@row(9)
@pytest.mark.parametrize(
    "model",
    [put_together, in_a_while, in_a_for, continued, of_a_loop_around, becomes_a_list, becomes_a_dict],
)
def test_it_is_what_the_break_has_left(model: Callable[[Tensor], object]) -> None:
    agree(model, INPUTS)
