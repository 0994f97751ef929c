"""Torch functions beside data-dependent sizes and numbers (rows 18, 48): dtypes and sizes as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor

INPUTS = [
    (torch.tensor([-2.0, 2.5, -2.25]), torch.tensor([1, 2, 0])),
    (torch.tensor([2.75, -0.25]), torch.tensor([0, -2, 1])),
    (torch.tensor([1.75]), torch.tensor([-1, 3, 3])),
    (torch.arange(5.0), torch.tensor([2, 0, 1])),
]


def powers(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    fixed = 2.5**t, 0.5**t, 0.9 ** torch.arange(x.shape[0]), t**0.5, t**-1.0, t**2.0, torch.pow(t.int(), 1.5)
    return (*fixed, 2 ** t.abs(), torch.ldexp(t.float(), t), torch.ldexp(t, t))


def powers_of_numbers(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    number, whole = x.sum().abs().item(), int(t[0])
    return torch.pow(t.abs(), number), number**t, torch.pow(abs(whole), t.abs()), (t + 0.5) ** whole


def quotients(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    number = x.abs().sum().item() + 0.5
    return t // 2.5, t % 2.5, (t // 2.5).long(), t // number, t % number, torch.div(t, 2.5, rounding_mode="trunc")


def joined(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    stacks = torch.stack([t[:1], x[:1]]), torch.vstack([t[:1], x[:1]]), torch.column_stack([t[:1], x[:1].double()])
    return (*stacks, torch.hstack([t, x]), torch.cat([t, x]))


def made(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    whole = int(t[0])
    ranges = torch.linspace(0, whole, 4), torch.linspace(whole, 3, 4), torch.linspace(0, 1, abs(whole))
    return (*ranges, x[None].expand(abs(whole) + 1, -1), x.expand(abs(whole), x.shape[0]))


def taken(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    order, both = x.argsort(), torch.stack([x, x * 2])
    flat = (
        torch.take_along_dim(x, order),
        torch.take_along_dim(x, order, 0),
        torch.take_along_dim(both, order[None], -1),
    )
    return (*flat, x[None].take_along_dim(torch.zeros(3, 2, dtype=torch.long), 1), t)


def products(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
    chain = torch.linalg.multi_dot([x[None], x[:, None], x[None]])
    return (chain, torch.inner(x, x), torch.inner(x[None], x[None] * 2), torch.inner(x, x[0]), t)


@row(18, 48)
@pytest.mark.parametrize("model", [powers, powers_of_numbers, quotients, joined, made, taken, products])
def test_operators(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, (dyn(0), None), paths=1)


@row(18)
def test_promotions_are_no_part_of_the_graph() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        for _ in range(x.shape[0]):
            both = torch.tensor([x[0], n.to(torch.promote_types(x.dtype, n.dtype))])
            if both.sum() > 2 and torch.can_cast(n.dtype, x.dtype):
                x = x - both.mean()
        return x.to(torch.result_type(x, n))

    inputs = [(torch.tensor(v), torch.tensor(n)) for v, n in (([3.0, 1.0], 2), ([0.5], 0), ([1.0, 4.0, 2.0], 3))]
    agree(model, inputs, (dyn(0), None))
