"""Lists of tensors whose sizes are data: of one size in every iteration, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor
from torch.export import Dim

import dy2st

INPUTS = [
    (torch.tensor(v), torch.tensor(t))
    for v, t in (([1.0, -2.0, 3.0], [2, 1]), ([1.0, 0.5, -0.25, 2.0], [1, 3]), ([2.0, 2.5], [2, 0]))
]
DYNAMIC = ({0: Dim.DYNAMIC}, None)


def masked(x: Tensor, t: Tensor) -> Any:
    return torch.stack([x[x > 0] * e for e in x])


def sliced(x: Tensor, t: Tensor) -> Any:
    k = int(t[0])
    rows = [(x[:k] * e, torch.unique(t)) for e in x]
    return torch.stack([a for a, _ in rows]), torch.stack([b for _, b in rows])


def rolled(x: Tensor, t: Tensor) -> Any:
    n = x.shape[0]
    padded = [torch.nn.functional.pad(x[:i], (0, n - i)) for i in range(n)]
    return torch.stack([torch.cat([x[i:], x[:i]]) for i in range(n)]), torch.stack(padded)


def inner(x: Tensor, t: Tensor) -> Any:
    rows = []
    for e in x:
        rows.append(torch.stack([x[x > e - 1] * y for y in t]).sum())  # noqa: PERF401  # a loop is wanted
    return torch.stack(rows)


@pytest.mark.slow_for("rolled", "sliced")
@row(24, 32, 59)
@pytest.mark.parametrize("model", [masked, sliced, rolled, inner], ids=lambda model: model.__name__)
def test_of_one_size(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, DYNAMIC, paths=1)


def by_the_place(x: Tensor, t: Tensor) -> Any:
    return torch.cat([x[: i + 1] for i in range(x.shape[0])])


def by_the_element(x: Tensor, t: Tensor) -> Any:
    return torch.cat([x[x > e] for e in x])


def by_another_list(x: Tensor, t: Tensor) -> Any:
    return [torch.zeros(max(i, 1)) for i in range(x.shape[0]) if x[i] > 0][-1]


def by_a_number(x: Tensor, t: Tensor) -> Any:
    rows, k = [], int(t[0])
    for e in x:
        rows.append(x[:k] * e)
        k = k + 1
    return torch.cat(rows)


def by_a_written_tensor(x: Tensor, t: Tensor) -> Any:
    rows, y = [], x.clone()
    for e in x:
        y.mul_(e)
        rows.append(x[y > 0])
    return torch.cat(rows)


def by_chance(x: Tensor, t: Tensor) -> Any:
    return [x[torch.rand(x.shape[0]) > 0.5] for _ in x][-1]


def by_two_sizes(x: Tensor, t: Tensor) -> Any:
    return torch.cat([x[: i + 1].expand(i + 1, i + 1) for i in range(x.shape[0])])


@row(24, 32, 59)
@pytest.mark.parametrize(
    "model",
    [by_the_place, by_the_element, by_a_number, by_a_written_tensor],
    ids=lambda model: model.__name__,
)
def test_of_many_sizes_put_together(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, DYNAMIC, paths=1)


@row(24, 32, 59)
@pytest.mark.parametrize("model", [by_another_list, by_two_sizes], ids=lambda model: model.__name__)
def test_of_many_sizes(model: Callable[..., Any]) -> None:
    error = refuses(model, INPUTS[0], DYNAMIC)
    assert error.code == "D2S211"
    assert "may differ from one" in str(error)


@row(24, 32, 59)
def test_of_sizes_that_are_drawn() -> None:
    x, t = INPUTS[0]
    program = dy2st.export(by_chance, (x, t), dynamic_shapes=DYNAMIC).module()
    assert all(torch.isin(program(x, t), x).all() for _ in range(5))


@pytest.mark.slow
@row(24, 59)
def test_lists_of_tensors_whose_sizes_only_the_graph_knows() -> None:
    def in_arms(x: Tensor, labels: Tensor) -> Tensor:
        out = []
        for c in range(2):
            picked = x[labels == c]
            if picked.numel() > 0:
                out.append(picked)
        return torch.cat(out)

    def on_some_trips(x: Tensor, labels: Tensor) -> Tensor:
        out = []
        for i in range(len(x)):
            if labels[i] > 0:
                out.append(x[i:])  # noqa: PERF401
        return torch.cat(out)

    def on_every_trip(x: Tensor, labels: Tensor) -> Tensor:
        out = [x * labels]
        for i in range(len(x)):
            out.append(x[i:])  # noqa: PERF401
        return torch.cat(out)

    for model in (in_arms, on_some_trips):
        error = refuses(model, (torch.randn(6), torch.tensor([0, 1, 1, 1, 0, 1])), (dyn(0), dyn(0)))
        assert error.code == "D2S211"

    agree(on_every_trip, [(torch.randn(n), torch.ones(n)) for n in (6, 1, 3)], (dyn(0), dyn(0)))

    def alike(x: Tensor, k: Tensor) -> Tensor:
        row = torch.zeros(int(k))
        out = []
        for i in range(x.shape[0]):
            out.append(row + i)  # noqa: PERF401
        for i in range(x.shape[0]):
            if x[i] > 0:
                out.append(row - 1)  # noqa: PERF401
        return torch.stack(out)

    agree(alike, [(torch.randn(6), torch.tensor(2)), (torch.tensor([-1.0]), torch.tensor(0))], (dyn(0), None))
