"""Sparse tensors that a model makes: products with dense ones, conversions, and what of them is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dy2st
from dy2st import errors

# torch says that nobody has asked it to look at the indices.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")

PLACES = torch.tensor([[0, 1, 2, 2, 0, 0], [1, 0, 2, 2, 0, 2]])
INFINITE = torch.tensor([1.0, -torch.inf, 3.0])
VALUES = [torch.arange(6.0) + 1, torch.arange(6.0) - 2, torch.zeros(6)]
VECTORS = [torch.tensor([1.0, 2, 3]), torch.tensor([-1.0, 0, -3]), INFINITE]
INPUTS = list(zip(VALUES, VECTORS, strict=True))


def matrix(values: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(PLACES, values, (3, 3))


def products(values: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    a = matrix(values)
    wide = torch.stack([x, x * 2], 1)
    return a @ x, torch.mv(a.to_sparse_csr(), x), torch.sparse.mm(a, wide), (a * 2).t() @ x, -a @ wide


def in_a_loop(values: Tensor, x: Tensor) -> tuple[Tensor, int]:
    a, rounds = matrix(values).to_sparse_csr(), 0
    while x.abs().max() > 0.01 and rounds < 5:
        x = torch.mv(a, x) * 0.5
        rounds += 1
    return x, rounds


def entries(values: Tensor, x: Tensor) -> tuple[Any, ...]:
    a = matrix(values).coalesce()
    shown = a.is_sparse, a.to_sparse_csr().is_sparse, a.layout == torch.sparse_coo, isinstance(a, Tensor), a.shape[0]
    return a.values() * x[0], a.indices(), a._nnz(), a.to_dense(), a.to_sparse_csr().values(), *shown


def of_a_dense_one(values: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    a = torch.outer(values[:3], x)
    return a.to_sparse().values(), a.to_sparse().indices(), a.to_sparse_csr() @ x


def of_sizes_by_data(values: Tensor, x: Tensor) -> Tensor:
    places = (x > 0).nonzero()[:, 0]
    a = torch.sparse_coo_tensor(torch.stack([places, places]), values[places], (len(x), len(x)))
    return a @ x


def of_dense_ones(values: Tensor, x: Tensor) -> Tensor:
    a = torch.outer(x, x)
    return torch.sparse.mm(a, torch.sparse.mm(a, x[:, None])) + values[0]


@pytest.mark.parametrize("model", [products, in_a_loop, entries, of_a_dense_one, of_dense_ones, of_sizes_by_data])
def test_what_a_sparse_tensor_is_made_for(model: Any) -> None:
    agree(model, [(v.clone(), x.clone()) for v, x in INPUTS], paths=1)


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=5))
def test_coalescing_is_torchs(places: list[tuple[int, int, int]]) -> None:
    indices = torch.tensor(places).T

    def model(values: Tensor) -> tuple[Tensor, ...]:
        a = torch.sparse_coo_tensor(indices, values, (2, 3, 2))
        return a.coalesce().values(), a.coalesce().indices(), a.to_dense()

    program = dy2st.export(model, (torch.ones(len(places)),))
    values = torch.arange(1.0, len(places) + 1)
    for want, got in zip(model(values), program.module()(values), strict=True):
        assert torch.equal(want, got)


def changed_in_a_loop(values: Tensor, x: Tensor) -> Tensor:
    a = matrix(values)
    while x.sum() > 1:
        x = a @ x / 100
        a = a * 0.5
    return x


REFUSED = {
    "returned": lambda values, _: matrix(values),
    "elementwise": lambda values, _: matrix(values) + matrix(values),
    "dense_first": lambda values, x: x @ matrix(values),
    "without_size": lambda values, x: torch.sparse_coo_tensor(PLACES, values) @ x,
    "not_coalesced": lambda values, _: matrix(values).values(),
    "text": lambda values, x: x * len(str(matrix(values))),
    "other_dtype": lambda values, x: matrix(values) @ x.double(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_of_sparse_tensors_is_refused(name: str) -> None:
    with pytest.raises((errors.SparseTensorError, errors.StagingError)):
        dy2st.export(REFUSED[name], INPUTS[0])


def test_a_sparse_tensor_that_a_loop_changes_is_refused() -> None:
    with pytest.raises(errors.StagingError):
        dy2st.export(changed_in_a_loop, INPUTS[0])


def test_an_index_beyond_the_size_raises_as_in_eager() -> None:
    def model(places: Tensor, x: Tensor) -> Tensor:
        return torch.sparse_coo_tensor(places, x, (3, 3)) @ x

    good, bad = torch.tensor([[0, 1, 2], [2, 1, 0]]), torch.tensor([[0, 1, 3], [2, 1, 0]])
    agree(model, [(good, torch.ones(3))], raising=[(-good, torch.ones(3))])
    # Here the node that uses the index raises, before a test of ours would.
    with pytest.raises(RuntimeError):
        dy2st.export(model, (good, torch.ones(3))).module()(bad, torch.ones(3))
