"""Models whose branches and loops are copied: unrolled loops, helpers that are called twice, copies within copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Stage(nn.Module):
    def __init__(self, limit: float, scale: float = 2.0) -> None:
        super().__init__()
        self.limit, self.scale = limit, scale

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > self.limit:
            return x * self.scale
        return x - 1


class Cascade(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList([Stage(0.0), Stage(3.0, 1.5), Stage(5.0, 0.5)])

    def forward(self, x: Tensor) -> Tensor:
        for stage in self.stages:
            x = stage(x)
        return x


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Parameter(torch.tensor([[1.0, -1.0, 0.5], [-0.5, 1.0, 1.0]]))
        self.experts = nn.ModuleList([Stage(1.0, 3.0), Stage(-1.0, -2.0)])

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        for gate, expert in zip(self.gates, self.experts, strict=True):
            if (gate * x).sum() > 0:
                out = out + expert(x)
        return out


class Adaptive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList([Stage(2.0), Stage(4.0)])

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        steps = 0
        while x.abs().max() < 20 and steps < 4:
            for stage in self.stages:
                x = stage(x)
            steps += 1
        return x, steps


def clipped(x: Tensor, limit: float) -> Tensor:
    if x.max() > limit:
        return x * (limit / x.max())
    return x


def twice(x: Tensor) -> Tensor:
    return clipped(clipped(x, 10.0) * 3, 20.0)


def around(x: Tensor) -> Tensor:
    x = clipped(x, 3.0)
    n = 0
    while x.sum() < 6 and n < 3:
        x = clipped(x + 1, 4.0)
        n += 1
    return clipped(x * 2, 5.0)


def bits(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for i in range(3):
        if x[i] > i - 1:
            total = total + 2.0**i
    return total


def ladder(x: Tensor) -> Tensor:
    for i in range(3):
        if x.sum() > i:
            x = x - 0.5
        elif x.sum() < -i:
            x = x + 0.25
        else:
            x = x * 1.5
    return x


def nested(x: Tensor) -> Tensor:
    for i in range(2):
        for k in range(2):
            if x[i] > k:
                if x[k] < 2:  # noqa: SIM108  two arms
                    x = x + 1
                else:
                    x = x * 0.5
    return x


def either(a: Tensor, b: Tensor) -> Tensor:
    return a if a.norm() > b.norm() else b


def tournament(x: Tensor) -> Tensor:
    first, second = either(x * 2, x + 1), either(x - 1, x * x)
    return either(first, second)


def early(x: Tensor) -> Tensor:
    for limit in (1.0, 2.0, 4.0):
        if x.sum() < limit:
            return x * limit
        x = x - 1
    return x


def counted(x: Tensor) -> tuple[Tensor, Tensor]:
    up = down = torch.zeros((), dtype=torch.int64)
    for i in range(3):
        if x[i] > 0.5:
            up = up + 1
        elif x[i] < -0.5:
            down = down + 1
    return up, down


def settled(x: Tensor, pull: float) -> Tensor:
    n = 0
    while x.abs().max() > 1 and n < 6:
        x = x * pull
        n += 1
    return x


def two_loops(x: Tensor) -> Tensor:
    return settled(x, 0.5) + settled(x + 2, 0.25)


def loops_in_a_loop(x: Tensor) -> Tensor:
    for pull in (0.5, 0.75):
        x = settled(x * 3, pull)
    return x


def rows(x: Tensor) -> Tensor:
    total = torch.zeros(2)
    for row in x:
        if row.sum() > 1:
            total = total + row
        if total.max() > 3:
            total = total * 0.5
    return total


def row_twice(x: Tensor) -> Tensor:
    return rows(x) + rows(x * 2 - 1)


def quantised(x: Tensor) -> Tensor:
    for step in (4.0, 2.0, 1.0):
        if x.max() >= step:
            x = x - step
    return x


def state_machine(x: Tensor) -> Tensor:
    state = torch.zeros((), dtype=torch.int64)
    for i in range(3):
        if state == 0:
            if x[i] > 0:
                state = state + 1
        elif x[i] < 0:
            state = state - 1
    return state * x


def sorted_by_swaps(x: Tensor) -> Tensor:
    a, b, c = x[0], x[1], x[2]
    if a > b:
        a, b = b, a
    if b > c:
        b, c = c, b
    if a > b:
        a, b = b, a
    return torch.stack([a, b, c])


def ternaries(x: Tensor) -> Tensor:
    parts = [v * 2 if v > 0.5 else v - 1 for v in (x[0], x[1], x[2])]
    return torch.stack(parts)


def bisected(x: Tensor) -> Tensor:
    low, high = torch.zeros(()), x.abs().sum() + 1
    for _ in range(3):
        middle = (low + high) / 2
        if middle * middle > x.abs().sum():
            high = middle
        else:
            low = middle
    return low + high


VECTORS = [(torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([-1.0, 0.5, 0.25]),)]
MATRICES = [(torch.tensor([[1.0, 2.0], [-1.0, 0.5], [2.0, 2.0]]),), (torch.ones(2, 2),)]
MODELS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    **{type(model).__name__: (model, VECTORS) for model in (Cascade(), Experts(), Adaptive())},
    **{
        model.__name__: (model, VECTORS)
        for model in (
            *(twice, around, bits, ladder, nested, tournament, early, counted, two_loops, loops_in_a_loop),
            *(quantised, state_machine, sorted_by_swaps, ternaries, bisected),
        )
    },
    **{model.__name__: (model, MATRICES) for model in (rows, row_twice)},
}
