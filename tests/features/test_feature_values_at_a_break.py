"""A variable that is a list in a loop and becomes something else right before the loop is left, or the reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, row
from torch import Tensor

import dy2st

INPUTS = [(torch.full((3,), each),) for each in (0.1, 1.0, 5.0, -1.0, -3.0)]


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
    x = x.abs() + 0.5
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


def by_several_breaks(x: Tensor) -> Tensor:
    outs: Any = []
    steps = 0
    while True:
        steps += 1
        outs.append(x * steps)
        if x.sum() * steps > 10:
            outs = torch.cat(outs)
            break
        if steps > 3:
            break
        if outs[-1].max() < -2.5:
            outs = (x, x + 1)
            break
    if isinstance(outs, Tensor):
        return outs[:3] * 2
    return outs[0] + outs[1]


def beside_a_return(x: Tensor) -> Tensor:
    parts: Any = []
    i = 0
    while True:
        i += 1
        parts.append(x * i)
        if x.sum() * i > 7:
            parts = torch.stack(parts).mean(0)
            break
        if i == 4:
            return x * 100
    return parts + x


def brackets(x: Tensor) -> Tensor:
    before, now, steps = x.sum() * 0, x.sum().abs() + 0.1, 0
    while steps < 4:
        if now > 40:
            bracket = [before, now]
            break
        if now < 2:
            bracket = [now]
            before = now * 2
            break
        before, now, steps = now, now * 2, steps + 1
    if steps == 4:
        bracket = [before * 0, now]
    low = 0 if bracket[0] <= bracket[-1] else 1
    return bracket[low] + before


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


@pytest.mark.slow_for("by_several_breaks")
@row(8)
@pytest.mark.parametrize(
    "model",
    [
        put_together,
        in_a_while,
        in_a_for,
        continued,
        by_several_breaks,
        of_a_loop_around,
        *(brackets, beside_a_return, becomes_a_list),
        becomes_a_dict,
    ],
)
def test_it_is_what_the_break_has_left(model: Callable[[Tensor], object]) -> None:
    agree(model, INPUTS)


class Cached:
    """Makes in the first iteration what the others use, so that this is taken out of the loop."""

    def __init__(self) -> None:
        self.kept: Any = None

    def __call__(self, x: Tensor) -> Tensor:
        self.kept = None
        outs: Any = []
        step = 0
        while True:
            step += 1
            if self.kept is None:
                self.kept = torch.cat([x, x])
            outs += [x * step + self.kept[:3]]
            if outs[-1].sum() > 20 or step >= 6:
                outs = torch.cat(outs)
                break
        return outs


def in_a_loop_that_python_runs(x: Tensor) -> Tensor:
    kept: Any = []
    for weight in (1.0, 2.0, 3.0):
        kept.append(x * weight)
        if kept[-1].sum() > 5:
            kept = torch.stack(kept).sum(0)
            break
    return kept if isinstance(kept, Tensor) else kept[0]


def by_several_breaks_that_python_runs(x: Tensor) -> Tensor:
    kept: Any = []
    for weight in (1.0, 2.0, 3.0, 4.0):
        kept.append(x * weight)
        if kept[-1].sum() > 7:
            kept = torch.stack(kept).sum(0)
            break
        if kept[-1].sum() < -4:
            break
        x = x + 1
    return kept if isinstance(kept, Tensor) else kept[0]


@pytest.mark.slow_but_for("in_a_loop_that_python_runs")
@row(8, 12)
@pytest.mark.parametrize("model", [in_a_loop_that_python_runs, by_several_breaks_that_python_runs])
def test_in_an_iteration_that_python_runs(model: Callable[[Tensor], object]) -> None:
    agree(model, INPUTS)


def test_in_an_iteration_that_is_taken_out() -> None:
    program = dy2st.export(Cached(), INPUTS[0], dynamic_shapes=None).module()
    for inputs in INPUTS:
        torch.testing.assert_close(program(*inputs), Cached()(*inputs))
