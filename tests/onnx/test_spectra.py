"""Singular values, eigenvalues and pseudoinverses in ONNX, against eager; what has no definite sign is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, linalg
from torch.export import Dim

import dy2st
from dy2st.errors import UntranslatedError
from tests.onnx.test_solvers import agree, matrices, run, session_of

DTYPES = (torch.float32, torch.float64)


def of_any(a: Tensor) -> tuple[Tensor, ...]:
    return linalg.pinv(a), a.pinverse(), linalg.svdvals(a)


def of_square(a: Tensor) -> tuple[Tensor, ...]:
    return linalg.eigvalsh(a + a.mT), linalg.eigvalsh(a, UPLO="U")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (4, 4), (5, 3), (3, 5), (1, 4), (2, 6, 3)])
def test_any_matrix(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    a = matrices(*sizes, dtype=dtype)
    agree(of_any, (a,), (a + 1,))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_eigenvalues(size: int, dtype: torch.dtype) -> None:
    agree(of_square, (matrices(size, size, dtype=dtype),), (torch.eye(size, dtype=dtype),))


def test_dynamic_sizes() -> None:
    calls = [(matrices(m, n),) for m, n in ((3, 4), (5, 2), (2, 2), (6, 7))]
    agree(lambda a: (linalg.pinv(a), linalg.svdvals(a)), *calls, shapes=({0: Dim("m"), 1: Dim("n")},))


def test_what_counts_as_zero() -> None:
    """A matrix of rank three, of five."""
    low = matrices(5, 3) @ matrices(3, 5, seed=1)
    agree(lambda a: (linalg.pinv(a, rtol=1e-4), linalg.pinv(a, atol=1e-3)), (low,), (torch.zeros(5, 5),))


def test_a_matrix_that_is_not_finite_fails() -> None:
    session = session_of(linalg.svdvals, (matrices(2, 2),))
    with pytest.raises(Exception, match="eager raises here"):
        run(session, (torch.tensor([[1.0, float("nan")], [0.0, 1.0]]),))


@pytest.mark.parametrize(
    "function", [lambda a: linalg.svd(a)[2], lambda a: linalg.eigh(a)[1], lambda a: linalg.pinv(a, hermitian=True)]
)
def test_what_has_no_definite_sign_is_refused(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(UntranslatedError):
        dy2st.onnx.export(function, (matrices(3, 3),))
