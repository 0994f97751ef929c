"""Rows 4, 47, 48: an int in a tensor, given where Python wants one: a size, a bound of a range, an element of a list.

It is Python's where the tensor is one of constants, and a number of the graph elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, row
from torch import Tensor, nn
from torch.export import Dim

ROWS = ({0: Dim("n", min=2, max=64)},)


def half(n: Any) -> Tensor:
    return torch.div(n, 2, rounding_mode="trunc")


def viewed(x: Tensor) -> Tensor:
    return x.view(2, half(x.shape[0])) * 2


def made(x: Tensor) -> Tensor:
    n = half(x.shape[0])
    return torch.zeros(n, 3) + x.new_ones(n, 1) + torch.full((n, 3), 2.0)


def expanded(x: Tensor) -> Tensor:
    return x.expand(half(x.shape[0]), -1).repeat(1, half(4))


def narrowed(x: Tensor) -> Tensor:
    return x.narrow(0, 0, half(x.shape[0])) + 1


@row(48)
@pytest.mark.parametrize("model", [viewed, made, expanded, narrowed])
@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "dynamic"])
def test_a_tensor_of_constants_is_a_size(model: Callable[[Tensor], Tensor], shapes: Any) -> None:
    sizes = (6, 6) if shapes is None else (6, 2, 10)
    agree(model, [(torch.randn(n),) for n in sizes], shapes, paths=1)


def from_data(x: Tensor, k: Tensor) -> Tensor:
    made = torch.zeros(k, 2) + x[0]
    return torch.cat([made, x.narrow(0, 0, k).reshape(k, 1).expand(-1, 2)])


@row(48)
def test_a_tensor_of_data_is_a_size_of_the_graph() -> None:
    agree(from_data, [(torch.randn(5), torch.tensor(k)) for k in (3, 0, 1, 5)], paths=1)


class Rounds(nn.Module):
    """It keeps numbers of rounds as tensors, as some libraries do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("most", torch.tensor(3))

    def forward(self, x: Tensor) -> Tensor:
        before = None
        for i in range(torch.tensor(4)):
            now = x.abs().sum()
            if i > 0 and before - now < 0.5:
                break
            before, x = now, x / 2
        for _ in range(int(torch.tensor(2)) + self.most):
            x = x + 1
        return x


@row(4)
def test_a_range_of_a_constant_is_pythons_and_one_of_a_buffer_is_not() -> None:
    agree(Rounds(), [(torch.tensor(v),) for v in ([4.0, 5.0], [0.1, 0.2], [-30.0, 1.0])], whole=False)


def shapes_as_lists(x: Tensor, k: Tensor) -> Tensor:
    n = k.max()
    piece = x[:, :n]
    assert list(piece.size()) == [3, n]
    if [x.shape[1], n, int(k[0])] == [8, 2, 2]:
        return piece.sum() * torch.ones(3)
    return x[:, 0] if (n, k[0]) != (3, 1) else -x[:, 0]


@row(47)
def test_lists_and_tuples_of_numbers_and_tensors_are_compared() -> None:
    agree(shapes_as_lists, [(torch.randn(3, 8), torch.tensor(k)) for k in ([2, 0], [3, 1], [1, 3], [0, 0], [2, 2])])


def of_nothing(x: Tensor, k: Tensor) -> Tensor:
    return x * 2 if [k] == [] else x if [k, 1] == [k.clone(), True] else -x


@row(47)
def test_lists_of_other_lengths_and_kinds_are_compared() -> None:
    agree(of_nothing, [(torch.randn(2), torch.tensor(k)) for k in (1, 0)], paths=1, whole=False)
