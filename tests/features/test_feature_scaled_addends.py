"""``alpha``, ``value`` and ``beta`` that are data, and powers of a counter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, row
from torch import Tensor

INPUTS = [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, -2.0, -3.0], [-1.0, 2.0, 0.5])]


@row(21)
def test_a_scale_that_is_a_tensor() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.clone()
        while y.norm() > 1:
            step = y.norm() / 8
            y.sub_(x * 0.5, alpha=step)
            y = torch.add(y, y, alpha=-0.3)
            y = y.addcmul_(y, y, value=step / 16).addcdiv_(y, y.abs() + 1, value=step)
        return y

    agree(model, [*INPUTS, (torch.tensor([0.1, 0.1, -0.2]),)], paths=2)


@row(21)
def test_a_scale_that_is_read() -> None:
    def model(x: Tensor) -> Any:
        scale = x.sum().item()
        if scale < 0:
            return x[None]
        y = torch.add(x, x, alpha=scale).sub(x, alpha=scale)
        y = torch.addcmul(y, x, x, value=scale) + torch.addcdiv(x, x, x.square() + 1, value=scale)
        return y + torch.addmm(x[None], x[None], torch.outer(x, x), beta=scale, alpha=2)

    agree(model, [*INPUTS, (torch.tensor([0.1, 0.1, -0.2]),)], paths=2)


@row(21)
def test_powers_of_a_counter() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        total, power = torch.zeros(()), 1
        for i in range(5):
            power = 10**i + 2**i
            total = total + 1e-2 * power
            if total > x.max():
                break
        return total, power

    agree(model, [*INPUTS, (torch.tensor([0.1, 0.1, -0.2]),)], paths=2)


@row(21)
def test_a_scale_of_what_is_added_at_places() -> None:
    def model(x: Tensor) -> Any:
        scale = x.sum() if x[0] > 0 else x.sum().item()
        places = torch.tensor([2, 0])
        y = x.index_add(0, places, x[:2], alpha=scale)
        y = y + x.clone().index_add_(0, places, x[1:], alpha=x.mean().item())
        product = torch.addbmm(y[None].expand(3, 3), y.view(1, 3, 1), x.view(1, 1, 3), alpha=scale, beta=0.5)
        return product.fill_diagonal_(x[1].item())

    agree(model, [*INPUTS, (torch.tensor([0.1, 0.1, -0.2]),)], paths=1)


@row(21)
def test_a_diagonal_that_a_tensor_fills() -> None:
    def model(x: Tensor) -> Tensor:
        table = torch.outer(x, x)
        while table.diagonal().sum() < 20:
            table = table.fill_diagonal_(x.abs().max() + table.diagonal().sum() / 3) + 0.5
        return table

    agree(model, [*INPUTS, (torch.tensor([0.1, 0.1, -0.2]),)], paths=2)


@pytest.mark.slow
@row(21)
def test_the_greater_of_numbers_and_tensors_of_different_types() -> None:
    def model(x: Tensor) -> Any:
        total = x.sum().item()
        a = max(total, 1) + 0.5
        b = min(int(total), x.mean().item(), 2) * 1.0
        c = max(x.int().sum(), 0.5) * x
        step: Any = 0
        while step < 3 and x.sum() < 10:
            x = x + 1
            step = x.mean()
        return a, b, c, x * max(x.max(), step), min(max(step, 0.25), x.max()) + 0.0

    agree(model, [*INPUTS, (torch.tensor([0.1, 0.1, -0.2]),)], paths=2)
