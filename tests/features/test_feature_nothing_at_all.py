"""Functions of torch that ask whether a tensor has elements, of sizes that are data (row 59).

A graph is for something. What eager does with nothing at all it does too, or it fails: that is the law tested here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor
from torch.nn import functional
from torch.utils import _pytree as pytree

import dy2st

FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "logsumexp": lambda rows: (rows.logsumexp(0), torch.logsumexp(rows, (0, 1), keepdim=True)),
    "roll": lambda rows: (rows.roll(1, 0), torch.roll(rows, (1, -1), (0, 1))),
    "cummax": lambda rows: (rows.cummax(0), torch.cummin(rows, 1)),
    "take": lambda rows: rows.take(torch.tensor([0, -1])),
    "batch_norm": lambda rows: functional.batch_norm(rows, torch.zeros(4), torch.ones(4)),
    "trapezoid": lambda rows: (torch.trapezoid(rows, dim=0), torch.cumulative_trapezoid(rows, dim=1)),
    "bilinear": lambda rows: functional.bilinear(rows, rows, torch.ones(2, 4, 4)),
    "affine_grid": lambda rows: functional.affine_grid(
        rows[:, :2, None] * torch.ones(3), [rows.shape[0], 1, 2, 2], False
    ),
    "tensordot": lambda rows: (torch.tensordot(rows, rows, ([0], [0])), torch.tensordot(rows, torch.ones(4, 2), 1)),
    "inner": lambda rows: (torch.inner(rows[:, 0], rows[:, 1]), torch.inner(rows, torch.ones(2, rows.shape[1]))),
}


def rows_of(function: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    def model(x: Tensor) -> Any:
        return function(x[x[:, 0] > 0])

    return model


def joined(function: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """Of rows that are joined of several, whose number is a sum."""

    def model(x: Tensor) -> Any:
        return function(torch.cat([x[x[:, 0] > 0], x[x[:, 1] > 0.5], x[x[:, 2] > 0.8]]))

    return model


def drawn(size: int, *, positive: int) -> Tensor:
    x = torch.rand(size, 4, generator=torch.Generator().manual_seed(size)) + 0.1
    return torch.where((torch.arange(size) < positive)[:, None], x, -x)


@row(59)
@pytest.mark.parametrize("rows", [rows_of, joined])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_something(name: str, rows: Callable[[Any], Any]) -> None:
    inputs = [(drawn(size, positive=positive),) for size, positive in ((5, 3), (4, 4), (3, 1), (7, 2))]
    agree(rows(FUNCTIONS[name]), inputs, (dyn(0),), paths=1)


@row(59)
@pytest.mark.parametrize("rows", [rows_of, joined])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_nothing_it_is_eagers_result_or_fails(name: str, rows: Callable[[Any], Any]) -> None:
    model = rows(FUNCTIONS[name])
    program = dy2st.export(model, (drawn(5, positive=3),), dynamic_shapes=(dyn(0),)).module()
    nothing = drawn(3, positive=0)
    try:
        found = pytree.tree_leaves(program(nothing))
    except (RuntimeError, IndexError):
        return
    for one, other in zip(found, pytree.tree_leaves(model(nothing)), strict=True):
        assert torch.equal(one, other)
