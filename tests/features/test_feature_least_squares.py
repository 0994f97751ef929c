"""Row 59: ``torch.linalg.lstsq``."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

import dy2st


def _inputs(*heights: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    pairs = [(torch.randn(n, 3, generator=generator), torch.randn(n, 2, generator=generator)) for n in heights]
    return [pair for a, b in pairs for pair in ((a, b), (-a, b))]


SHAPES = {"a": dyn(0), "b": dyn(0)}


def _solution(a: Tensor, b: Tensor) -> Any:
    if a.sum() > 0:
        a = a * 2
    found = torch.linalg.lstsq(a, b)
    return found.solution, found.rank


@row(59)
def test_of_any_size() -> None:
    agree(_solution, _inputs(4, 5, 3, 2, 1), SHAPES)


def _batched(a: Tensor, b: Tensor) -> Any:
    if a.sum() > 0:
        a = a * 2
    many = torch.stack([a, a + 1, a * 2 - 3])
    one = torch.linalg.lstsq(many, torch.stack([a, a + 1, a])[..., 0], rcond=1e-4).solution
    return torch.linalg.lstsq(many, torch.stack([b, b - 1, b]), driver="gelsd").solution, one


@pytest.mark.slow
@row(59)
def test_of_batches_and_vectors() -> None:
    agree(_batched, _inputs(4, 3, 2), SHAPES)


def _all_parts(a: Tensor, b: Tensor) -> Any:
    if a.sum() > 0:
        a = a * 2
    found = torch.linalg.lstsq(a, b, driver="gelss")
    solution, residuals, rank, values = torch.linalg.lstsq(a, b)
    return *found, solution, residuals + 1, rank, values + 1


@row(59)
def test_residuals_and_singular_values() -> None:
    agree(_all_parts, _inputs(5, 5))


def _residuals(a: Tensor, b: Tensor) -> Any:
    if a.sum() > 0:
        a = a * 2
    return torch.linalg.lstsq(a, b, driver="gelsd").residuals


@row(59)
def test_residuals_of_any_size_are_refused() -> None:
    assert refuses(_residuals, _inputs(5, 2)[0], SHAPES).code == "D2S204"


def _of_a_singular_one(a: Tensor, b: Tensor) -> Any:
    if a[0, 0] > 100:
        a = a * 0
    return torch.linalg.lstsq(a, b).solution


@row(59)
def test_a_matrix_without_full_rank_fails() -> None:
    agree(_of_a_singular_one, _inputs(4, 3), SHAPES, whole=False, paths=1)
    a, b = _inputs(4)[0]
    a[0, 0] = 1000
    program = dy2st.export(_of_a_singular_one, (a, b), dynamic_shapes=SHAPES)
    with pytest.raises(RuntimeError, match="no full rank"):
        program.module()(a, b)
