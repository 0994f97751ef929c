"""``torch.linalg``'s factors and solutions in ONNX, against eager; what eager raises for fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, linalg
from torch.export import Dim

import dy2st

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def session_of(model: Callable[..., Any], args: Sequence[Tensor], shapes: Any = None) -> Any:
    """What runs the exported model."""
    program = dy2st.onnx.export(model, tuple(args), dynamic_shapes=shapes)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(program.model_proto.SerializeToString(), options)


def run(session: Any, args: Sequence[Tensor]) -> list[Tensor]:
    """The results as tensors."""
    feeds = {i.name: a.numpy() for i, a in zip(session.get_inputs(), args, strict=True)}
    return [torch.from_numpy(found) for found in session.run(None, feeds)]


def agree(model: Callable[..., Any], *calls: Sequence[Tensor], shapes: Any = None) -> None:
    """The exported model (of the first call) computes what eager does for each call."""
    session = session_of(model, calls[0], shapes)
    for args in calls:
        wanted = model(*args)
        for found, want in zip(run(session, args), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert found.dtype == want.dtype
            tolerance = TOLERANCE.get(want.dtype, 0.0)
            torch.testing.assert_close(found, want, rtol=tolerance, atol=tolerance)


def matrices(*sizes: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Random numbers."""
    return torch.randn(*sizes, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def positive(*sizes: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Positive-definite matrices."""
    half = matrices(*sizes, dtype=dtype, seed=seed)
    return half @ half.mT + torch.eye(sizes[-1], dtype=dtype)


def by_lu(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """All that goes by LU factors."""
    sign, logarithm = linalg.slogdet(a)
    return linalg.solve(a, b), linalg.solve(a, b.mT, left=False), linalg.inv(a), sign, logarithm, *linalg.lu_factor(a)


def by_cholesky(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """All that goes by Cholesky factors."""
    lower, upper = linalg.cholesky(a), linalg.cholesky(a, upper=True)
    solved = torch.cholesky_solve(b, lower), torch.cholesky_solve(b, upper, upper=True)
    return lower, upper, *solved, torch.cholesky_inverse(lower)


def by_triangles(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Every kind of triangular solution."""
    kept = a.tril() + 3 * torch.eye(a.shape[-1], dtype=a.dtype), a.triu() + 3 * torch.eye(a.shape[-1], dtype=a.dtype)
    return tuple(
        linalg.solve_triangular(t, b if left else b.mT, upper=upper, left=left, unitriangular=unit)
        for upper, t in zip((False, True), kept, strict=True)
        for left in (True, False)
        for unit in (True, False)
    )


def by_reflections(a: Tensor) -> tuple[Tensor, ...]:
    """Q and R in every mode."""
    return *linalg.qr(a), *linalg.qr(a, mode="complete"), linalg.qr(a, mode="r")[1]


SLOW = pytest.mark.slow
EVERY_SIZE = [
    ((), 2, torch.float64),
    ((2, 1), 2, torch.float32),
    ((), 0, torch.float32),
    *(
        pytest.param(*each, marks=SLOW)
        for each in (
            ((), 1, torch.float32),
            ((), 1, torch.float64),
            ((), 2, torch.float32),
            ((3,), 5, torch.float32),
            ((3,), 5, torch.float64),
            ((2, 1), 2, torch.float64),
            ((), 0, torch.float64),
            ((0,), 2, torch.float32),
            ((0,), 2, torch.float64),
        )
    ),
]


@pytest.mark.slow_but_for("batch0-2-dtype0")
@pytest.mark.parametrize(("batch", "n", "dtype"), EVERY_SIZE)
def test_matrices_of_every_size(batch: tuple[int, ...], n: int, dtype: torch.dtype) -> None:
    a, b = matrices(*batch, n, n, dtype=dtype), matrices(*batch, n, 2, dtype=dtype, seed=1)
    agree(by_lu, (a, b))
    agree(by_cholesky, (positive(*batch, n, n, dtype=dtype), b))
    agree(by_triangles, (a, b))
    agree(by_reflections, (a,))


@pytest.mark.parametrize("sizes", [(5, 3), (2, 4), (3, 1), (1, 3), (0, 2), (2, 4, 2)])
def test_matrices_that_are_not_square(sizes: tuple[int, ...]) -> None:
    agree(by_reflections, (matrices(*sizes),))


@pytest.mark.slow
def test_sizes_known_only_when_the_graph_runs() -> None:
    n = Dim("n")
    sizes = (3, 1, 2, 6)
    shapes = ({0: n, 1: n}, {0: n})
    calls = [(matrices(k, k, seed=k), matrices(k, 2, seed=9)) for k in sizes]
    agree(by_lu, *calls, shapes=shapes)
    agree(by_cholesky, *[(positive(k, k, seed=k), b) for (_, b), k in zip(calls, sizes, strict=True)], shapes=shapes)
    agree(by_reflections, *[(matrices(k, 2, seed=k),) for k in (3, 1, 2, 6, 0)], shapes=({0: n},))


def test_batches_are_stretched() -> None:
    agree(linalg.solve, (matrices(2, 1, 3, 3), matrices(4, 3, 2, seed=1)))
    agree(linalg.solve, (matrices(3, 3), matrices(2, 3, 2, seed=1)))
    agree(linalg.solve, (matrices(2, 3, 3), matrices(3, 2, seed=1)))
    agree(linalg.solve, (matrices(2, 3, 3), matrices(2, 3, seed=1)))
    agree(linalg.solve, (matrices(3, 3), matrices(3, seed=1)))
    agree(lambda a, b: torch.cholesky_solve(b, a.tril() + 3 * torch.eye(3)), (matrices(2, 3, 3), matrices(3, 2)))


PIVOTING = torch.tensor([[0.0, 2.0, 1.0], [1e-20, 1.0, 3.0], [4.0, 1e10, 0.0]], dtype=torch.float64)


@pytest.mark.slow
def test_matrices_that_need_their_rows_exchanged() -> None:
    agree(by_lu, (PIVOTING, torch.ones(3, 2, dtype=torch.float64)))
    scaled = torch.tensor([[1e-12, 1.0], [1.0, 1.0]])
    agree(by_lu, (scaled, torch.ones(2, 2)))
    agree(by_reflections, (torch.diag(torch.tensor([1e-25, 1e25, -1.0])),))
    agree(by_reflections, (torch.tensor([[1e30, 2e30], [-1e30, 1e30]]),))


def test_solutions_of_tensors() -> None:
    a = matrices(4, 4) + 3 * torch.eye(4)
    agree(lambda a: linalg.tensorinv(a.reshape(2, 2, 4)), (a,))
    agree(lambda a: linalg.tensorinv(a.reshape(4, 2, 2), ind=1), (a,))
    agree(lambda a, b: linalg.tensorsolve(a.reshape(2, 2, 4), b), (a, matrices(2, 2)))
    agree(lambda a, b: linalg.tensorsolve(a.reshape(2, 4, 2), b, dims=(1,)), (a, matrices(2, 2)))


def test_a_determinant_of_zero() -> None:
    agree(lambda a: tuple(linalg.slogdet(a)), (matrices(3, 3),), (torch.ones(3, 3),), (torch.zeros(3, 3),))


def newton(x: Tensor) -> Any:
    """A factor and a solution in a loop whose end the data decides."""
    steps = torch.tensor(0)
    for _ in range(6):
        matrix = torch.outer(x, x) + torch.eye(3)
        x = linalg.solve(matrix, x) + linalg.cholesky(matrix)[:, 0] * 0.1
        steps = steps + 1
        if x.norm() < 0.6:
            break
    return x, steps


def test_in_a_loop() -> None:
    agree(newton, (torch.ones(3),), (torch.arange(3.0),), (torch.tensor([0.1, 0.0, 0.0]),))


def conditional(a: Tensor, b: Tensor) -> Any:
    """Nothing is solved on the other path."""
    if b.sum() > 0:
        return linalg.solve(a, b)
    return b


@pytest.mark.slow
def test_what_eager_raises_for_fails() -> None:
    good, singular = torch.tensor([[2.0, 1.0], [1.0, 3.0]]), torch.ones(2, 2)
    for model, bad in (
        (lambda a: linalg.solve(a, a[0]), singular),
        (linalg.inv, singular),
        (torch.inverse, singular),
        (lambda a: linalg.lu_factor(a)[0], singular),
        (lambda a: linalg.inv_ex(a, check_errors=True)[0], singular),
        (lambda a: linalg.matrix_power(a, -2), singular),
        (linalg.cholesky, -good),
        (linalg.cholesky, torch.full((2, 2), torch.nan)),
        (lambda a: (linalg.cholesky(a), a)[1], -good),
    ):
        program = dy2st.export(model, (good,))
        torch.testing.assert_close(program.module()(good), model(good))
        session = session_of(model, (good,))
        torch.testing.assert_close(run(session, (good,))[0], model(good))
        with pytest.raises(RuntimeError):
            model(bad)
        with pytest.raises(RuntimeError, match=r"torch\.linalg"):
            program.module()(bad)
        with pytest.raises(Exception, match=r"torch\.linalg"):
            run(session, (bad,))


def test_only_the_path_that_is_taken_fails() -> None:
    session = session_of(conditional, (matrices(2, 2), torch.ones(2)))
    singular = torch.ones(2, 2)
    torch.testing.assert_close(run(session, (singular, -torch.ones(2)))[0], -torch.ones(2))
    with pytest.raises(Exception, match="the matrix is singular"):
        run(session, (singular, torch.ones(2)))


def caught(a: Tensor) -> Any:
    """What is raised for a matrix is caught."""
    try:
        return linalg.cholesky(a)
    except RuntimeError:
        return a


def looked_at(a: Tensor) -> Any:
    """The same, as a graph can say it."""
    factor, info = linalg.cholesky_ex(a)
    if info == 0:
        return factor
    return a


def test_a_failure_that_is_caught() -> None:
    agree(caught, (torch.eye(2),), (-torch.eye(2),))
    agree(looked_at, (torch.eye(2),), (-torch.eye(2),), (torch.ones(2, 2),))


def of_lu(a: Tensor) -> tuple[Tensor, ...]:
    factors, pivots = linalg.lu_factor(a)
    return *linalg.lu(a), *torch.lu_unpack(factors, pivots), linalg.det(torch.lu_unpack(factors, pivots)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (2, 4, 4), (0, 3, 3)])
def test_lu_unpacked(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    a = matrices(*sizes, dtype=dtype)
    agree(of_lu, (a,), (a.flip(-2),))


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (2, 4, 2)])
def test_lu_of_any_matrix(sizes: tuple[int, ...]) -> None:
    agree(linalg.lu, (matrices(*sizes),), (matrices(*sizes, seed=1),))


def test_solved_by_lu_factors() -> None:
    calls = [(matrices(n, n), matrices(n, 2, seed=1)) for n in (3, 1, 5)]
    shapes = ({0: (size := Dim("n")), 1: size}, {0: size})
    agree(lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), *calls, shapes=shapes)
    batch = (matrices(2, 3, 3), matrices(2, 3, 1, seed=1))
    agree(lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), batch)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (3, 5, 5), (4, 4)])
def test_determinants_of_doubles(sizes: tuple[int, ...]) -> None:
    a = matrices(*sizes, dtype=torch.float64)
    agree(linalg.det, (a,), (a.flip(-1),), (torch.zeros_like(a),))


def test_transposed_lu_factors_are_refused() -> None:
    with pytest.raises(dy2st.errors.OnnxError, match="transposed"):
        dy2st.onnx.export(lambda a: linalg.lu_solve(*linalg.lu_factor(a), a, adjoint=True), (matrices(3, 3),))
