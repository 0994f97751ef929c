"""One of several objects by a data-dependent index or key: experts, tables of functions, names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor, nn

from dy2st.errors import GrownListError

INPUTS = [(torch.tensor(v),) for v in ([0.25, 0.5], [1.5, 0.0], [1.0, 1.25], [0.0, 0.0])]


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))])
        self.experts.append(nn.Identity())
        self.gate = nn.Linear(3, 3)
        self.named = nn.ModuleDict({"up": nn.Linear(3, 3), "down": nn.Tanh()})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)), nn.Parameter(torch.arange(3.0))])

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        best = self.gate(x).argmax(-1)
        for i in range(x.shape[0]):
            out[i] = self.experts[best[i]](x[i])
        last = int(best.sum()) % 2
        return self.named[["up", "down"][last]](out) * self.scales[last] + self.experts[-1 - last](x)


@pytest.mark.slow
@row(17, 56)
def test_experts_by_index_and_name() -> None:
    torch.manual_seed(0)
    agree(Experts().eval(), [(torch.randn(n, 3),) for n in (4, 1, 0, 3)], (dyn(0),), paths=1)


def of_functions(x: Tensor, n: int) -> Tensor:
    return [torch.sin, torch.neg, lambda v: v * 10][n](x)


def of_names(x: Tensor, n: int) -> Tensor:
    mode = ("mean", "sum", "none")[n]
    y = x * 2 if mode in ("mean", "sum") else x
    return y.mean() if mode == "mean" else y.sum() if mode == "sum" else y.max()


def of_shapes(x: Tensor, n: int) -> Tensor:
    return [x, x[:1], torch.ones(3)][n].sum()


def of_numbers_by_key(x: Tensor, n: int) -> Tensor:
    table = {0: 0.5, 1: 2.0, 2: -1.0}
    return x * table[n] if n in table else x


def of_tensors_by_key(x: Tensor, n: int) -> Tensor:
    return {0: x, 1: x * 3}.get(n, x - 1) + {2: 5}.get(n, 7)


def of_methods_by_key(x: Tensor, n: int) -> Tensor:
    return {0: x.sum, 1: x.prod, 2.0: x.max}[n]()


def of_members(x: Tensor, n: int) -> Tensor:
    return x * (n in {0, 2}) + (n not in frozenset({True, 7})) + (n in {1: "a"})


def nothing_there(x: Tensor, n: int) -> Tensor:
    found = {1: x}.get(n)
    return x - 1 if found is None else found * 2


SELECTIONS = [
    of_functions,
    of_names,
    of_shapes,
    of_numbers_by_key,
    of_tensors_by_key,
    of_methods_by_key,
    of_members,
    nothing_there,
]


@row(17, 49)
@pytest.mark.parametrize("select", SELECTIONS, ids=lambda s: s.__name__)
def test_selections(select: Callable[[Tensor, Any], Tensor]) -> None:
    def model(x: Tensor) -> Tensor:
        return select(x, int(x.sum()))

    agree(model, INPUTS, (dyn(0),), paths=1)


@row(43)
def test_what_is_not_there_raises() -> None:
    def by_index(x: Tensor) -> Tensor:
        return [torch.sin, torch.cos][int(x.sum())](x)

    def by_key(x: Tensor) -> Tensor:
        return {0: torch.sin, 1: torch.cos}[int(x.sum())](x)

    for model in (by_index, by_key):
        agree(model, [INPUTS[0], INPUTS[1]], (dyn(0),), paths=1, raising=[INPUTS[2]])


@row(17)
def test_too_many_objects() -> None:
    functions = [lambda v, i=i: v * i for i in range(65)]

    def model(x: Tensor) -> Tensor:
        return functions[int(x.sum())](x)

    assert isinstance(refuses(model, INPUTS[0]), GrownListError)
