"""Torch functions whose results have a size that follows from a dynamic size or from data (rows 48 and 59)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from harness import agree, dyn, row, vectors
from test_feature_sizes import matrices
from torch import Tensor

import dy2st.onnx

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (4, 0, 1, 2, 5)
PAIRS = [(torch.arange(float(n)).sin(), torch.arange(float(m)).cos()) for n, m in ((3, 4), (1, 2), (4, 1), (0, 2))]


def pairs_above(x: Tensor) -> Tensor:
    i, j = torch.triu_indices(len(x), len(x), 1)
    apart = (x[i] - x[j]).abs()
    if x.sum() > 0:
        apart = apart * 2
    return apart


OF_A_VECTOR: dict[str, Callable[[Tensor], Any]] = {
    "tril_indices": lambda x: torch.tril_indices(x.shape[0], x.shape[0]),
    "tril_indices below": lambda x: torch.tril_indices(x.shape[0], x.shape[0], -2),
    "triu_indices": lambda x: torch.triu_indices(x.shape[0], 3, offset=1, dtype=torch.int32),
    "combinations": torch.combinations,
    "combinations of three": lambda x: torch.combinations(x, r=3),
    "combinations again": lambda x: torch.combinations(x, 3, with_replacement=True),
    "cartesian_prod": lambda x: torch.cartesian_prod(x, x),
    "vander": torch.vander,
    "vander of three": lambda x: torch.vander(x, 3, increasing=True),
    "linalg.vander": lambda x: torch.linalg.vander(x, N=4),
    "kron": lambda x: torch.kron(x, x),
    "pad with a size": lambda x: F.pad(x, [0, 1], value=x.shape[0] - 1),
    "pad with a sum": lambda x: F.pad(x, (2, 1), "constant", x.sum().item()),
}


@row(48)
@pytest.mark.parametrize("name", OF_A_VECTOR)
def test_of_a_vector(name: str) -> None:
    function = OF_A_VECTOR[name]

    def model(x: Tensor) -> Tensor:
        return function(x)

    agree(model, vectors(*SIZES), (dyn(0),), paths=1)


@row(48)
def test_pairs_in_an_arm() -> None:
    agree(pairs_above, vectors(*SIZES, 6, seed=3), (dyn(0),))


@row(48)
def test_of_matrices() -> None:
    def covariances(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        counts = torch.arange(1, x.shape[1] + 1)
        weighted = torch.cov(x, fweights=counts, aweights=x[0].abs())
        return torch.cov(x, correction=0), weighted, torch.corrcoef(x)

    def variance(x: Tensor) -> Tensor:
        return torch.cov(x)

    def diagonal(x: Tensor) -> Tensor:
        return x.clone().fill_diagonal_(math.inf)

    def kron(x: Tensor, y: Tensor) -> Tensor:
        return torch.kron(x, y[None])

    agree(covariances, matrices(4, 2, 5), (dyn(0),), paths=1)
    agree(variance, vectors(4, 2, 6), (dyn(0),), paths=1)
    agree(diagonal, matrices(4, 0, 1, 5), (dyn(0),), paths=1)
    agree(kron, PAIRS, (dyn(0), dyn(0)), paths=1)


@row(48)
def test_a_single_variable_has_a_number_as_covariance() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.cov(x)

    program = dy2st.onnx.export(model, (torch.ones(3, 4),), dynamic_shapes=(dyn(0),))
    with pytest.raises(Exception, match="other than one variable"):
        program(torch.ones(1, 4))


@row(48, 59)
def test_classes_that_the_data_has() -> None:
    def model(i: Tensor) -> Tensor:
        return F.one_hot(i)

    def given(i: Tensor, x: Tensor) -> Tensor:
        return F.one_hot(i, x.shape[0]).to(x.dtype)

    numbers = [torch.tensor(values) for values in ([1, 3, 0], [2], [0, 0])]
    agree(model, [(i,) for i in numbers], (dyn(0),), paths=1)
    agree(given, [(i, torch.ones(k)) for i, k in zip(numbers, (4, 5, 1), strict=True)], (dyn(0), dyn(0)), paths=1)
    program = dy2st.onnx.export(given, (numbers[0], torch.ones(4)), dynamic_shapes=(dyn(0), dyn(0)))
    with pytest.raises(Exception, match="eager raises here"):
        program(torch.tensor([3]), torch.ones(2))


@row(48)
def test_rows_of_an_index_are_written() -> None:
    def ranks(x: Tensor) -> Tensor:
        rank = torch.empty_like(x, dtype=torch.int32)
        order = x.argsort()
        rank[order[: x.numel()]] = torch.arange(1, x.numel() + 1, dtype=torch.int32)
        return rank

    agree(ranks, vectors(*SIZES), (dyn(0),), paths=1)


@row(59)
def test_a_flag_as_an_index() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = x.sum()
        good = total > 0
        score = torch.ones_like(total)
        score[good] = 1 - total[good] / x.abs().sum()[good]
        score[~good] = 0.0
        return score, x[good]

    agree(model, vectors(4, 1, 6, 7, seed=1), (dyn(0),), paths=1)


@row(59)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_tables_of_what_the_data_has() -> None:
    def contingency(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        first, i = torch.unique(a, return_inverse=True)
        second, j = torch.unique(b, return_inverse=True)
        table = torch.sparse_coo_tensor(torch.stack([i, j]), torch.ones(len(i)), (len(first), len(second))).to_dense()
        return table, table[table > 0].log()

    def centres(a: Tensor, x: Tensor) -> Tensor:
        kinds, places = torch.unique(a, return_inverse=True)
        sums = torch.zeros(len(kinds), 1).index_add(0, places, x[:, None])
        return torch.cdist(sums, sums)

    numbers = [torch.tensor(values) for values in ([1, 3, 0, 3], [2], [0, 0, 5])]
    agree(contingency, [(i, i.flip(0)) for i in numbers], (dyn(0), dyn(0)), paths=1)
    agree(centres, [(i, torch.arange(float(len(i)))) for i in numbers], (dyn(0), dyn(0)), paths=1)


@row(31, 48)
def test_a_tensor_of_one_size_is_changed_by_one_of_another_that_is_equal() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        x = torch.zeros_like(b)
        rest = b - a @ x
        for _ in range(2):
            x += 0.1 * rest
            rest -= 0.1 * (a @ rest)
        return rest

    given = [(torch.arange(float(n * n)).reshape(n, n).sin(), torch.arange(float(n))) for n in (3, 2, 5)]
    agree(model, given, (dyn(0, 1), dyn(0)), paths=1)
