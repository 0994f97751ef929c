"""Iterative linear algebra: rounds until the residual is small."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import randn, spd


def systems(n=12, *, columns=1, zero=True):
    """Matrices of several conditions with a right-hand side; the last one is zero."""
    right = randn(n, columns, seed=9)
    sets = [(spd(n, seed=1, shift=0.3), right), (spd(n, seed=2, shift=5.0), right), (spd(n, seed=3, shift=1.0), right)]
    return sets + ([(spd(n, seed=1, shift=0.3), torch.zeros_like(right))] if zero else [])


def vectors(n=12):
    return [(matrix, right[:, 0]) for matrix, right in systems(n)]


def sparse(matrix):
    """Rows and columns of a full matrix, as coordinates."""
    n = matrix.shape[0]
    return torch.arange(n).repeat_interleave(n), torch.arange(n).repeat(n)


@case("linear_operator", "linear_operator.utils.linear_cg", "conjugate gradients that stop when all columns are solved")
def linear_operator_cg():
    from linear_operator.utils import linear_cg

    def model(a, b):
        return linear_cg(a.matmul, b, max_iter=40, tolerance=1e-3, max_tridiag_iter=20)

    return Given(model, systems(24, columns=2))


@case("linear_operator", "linear_operator.utils.minres", "minimal residuals, a test every tenth round")
def linear_operator_minres():
    from linear_operator.utils.minres import minres

    return Given(lambda a, b: minres(a.matmul, b, max_iter=40), systems(12, columns=2, zero=False))


@case("linear_operator", "linear_operator.utils.lanczos.lanczos_tridiag", "orthogonalised again where it is needed")
def linear_operator_lanczos():
    from linear_operator.utils.lanczos import lanczos_tridiag

    def model(a, b):
        return lanczos_tridiag(a.matmul, 8, a.dtype, a.device, a.shape, init_vecs=b)

    return Given(model, systems(zero=False))


@case("linear_operator", "linear_operator.utils.cholesky.psd_safe_cholesky", "more and more jitter until it succeeds")
def linear_operator_psd_safe_cholesky():
    from linear_operator.utils.cholesky import psd_safe_cholesky

    low = randn(6, 2, seed=4)
    sets = [spd(6, seed=1, shift=0.5), low @ low.T, low @ low.T - 5e-5 * torch.eye(6)]
    return Given(lambda a: psd_safe_cholesky(a, max_tries=4), [(each,) for each in sets])


@case("linear_operator", "linear_operator.functions._pivoted_cholesky", "columns until the error is small")
def linear_operator_pivoted_cholesky():
    from linear_operator import to_linear_operator

    def model(a):
        return to_linear_operator(a).pivoted_cholesky(rank=8, error_tol=1e-2)

    low = randn(12, 3, seed=4)
    sets = [spd(12, seed=1, shift=0.3), low @ low.T + 1e-4 * torch.eye(12), torch.eye(12) * 1e-4]
    return Given(model, [(each,) for each in sets])


@case("linear_operator", "linear_operator.utils.qr.stable_qr", "zeros on the diagonal are replaced, if there are any")
def linear_operator_stable_qr():
    from linear_operator.utils.qr import stable_qr

    low = randn(5, 1, seed=4) @ randn(1, 3, seed=5)
    return Given(stable_qr, [(randn(5, 3, seed=1),), (low,), (torch.zeros(5, 3),)])


@case("xitorch", "xitorch.linalg.solve(method='cg')", "the best of the rounds is kept")
def xitorch_cg():
    from xitorch import LinearOperator
    from xitorch.linalg import solve

    def model(a, b):
        return solve(LinearOperator.m(a, is_hermitian=True), b, method="cg", posdef=True, rtol=1e-5, max_niter=40)

    return Given(model, systems(columns=2))


@case("xitorch", "xitorch.linalg.solve(method='bicgstab')", "the same for matrices without symmetry")
def xitorch_bicgstab():
    from xitorch import LinearOperator
    from xitorch.linalg import solve

    def model(a, b):
        return solve(LinearOperator.m(a, is_hermitian=False), b, method="bicgstab", rtol=1e-5, max_niter=40)

    skew = torch.triu(randn(12, 12, seed=5), 1) * 0.3
    return Given(model, [(a + skew, b) for a, b in systems(columns=2)])


@case("xitorch", "xitorch.linalg.solve(method='gmres')", "a growing basis, tested in each round")
def xitorch_gmres():
    from xitorch import LinearOperator
    from xitorch.linalg import solve

    def model(a, b):
        return solve(LinearOperator.m(a, is_hermitian=False), b, method="gmres", rtol=1e-4, max_niter=12)

    return Given(model, systems(8, columns=1))


@case("xitorch", "xitorch.linalg.symeig(method='davidson')", "a subspace that grows until the residual is small")
def xitorch_davidson():
    from xitorch import LinearOperator
    from xitorch.linalg import symeig

    def model(a):
        return symeig(
            LinearOperator.m(a, is_hermitian=True), 2, method="davidson", max_niter=20, min_eps=1e-4, v_init="eye"
        )

    sets = [torch.diag(torch.arange(1.0, 13)) + scale * spd(12, seed=1, shift=0.1) for scale in (0.0, 0.2, 1.0)]
    return Given(model, [(each,) for each in sets])


@case("torchsolve", "torchsolve.conjugate_gradient", "stops by tolerance, or where the curvature is not positive")
def torchsolve_cg():
    import torchsolve

    def model(a, b):
        return torchsolve.conjugate_gradient(lambda v: a @ v, b, max_iter=30, rtol=1e-4).solution

    return Given(model, vectors())


@case("torchopt", "torchopt.linalg.cg", "a while on a tuple of state, by a condition that is a function")
def torchopt_cg():
    from torchopt.linalg import cg

    return Given(lambda a, b: cg(lambda v: a @ v, b, rtol=1e-4, maxiter=40), vectors())


@case("pypose", "pypose.optim.solver.CG", "returns zero for a zero right-hand side, else rounds and a break")
def pypose_cg():
    from pypose.optim.solver import CG

    return Given(CG(maxiter=40, tol=1e-4), [(a.double(), b.double()) for a, b in systems()])


@case("pytorch-minimize", "torchmin.lstsq.cg.cg", "normal equations, stopped by the residual")
def torchmin_lstsq_cg():
    from torchmin.lstsq.cg import cg

    # A right-hand side of zero makes eager return NaN alone, which says nothing of a file.
    *sets, (a, _) = vectors()
    return Given(lambda a, b: cg(a, b, max_iter=30, tol=1e-3), [*sets, (a, 0.01 * sets[0][1])])


@case("torch_sla", "torch_sla.vi_solve._gmres", "restarts, Givens rotations in Python numbers, two ways out")
def torch_sla_gmres():
    from torch_sla.vi_solve import _gmres

    return Given(lambda a, b: _gmres(lambda v: a @ v, b, 1e-4, 24, restart=6), vectors(8))


@case("torch_sla", "torch_sla.vi_solve._cg", "a break on .item() of the residual")
def torch_sla_plain_cg():
    from torch_sla.vi_solve import _cg

    return Given(lambda a, b: _cg(lambda v: a @ v, b, 1e-4, 24), vectors(8))


def torch_sla_backend(name, **more):
    from torch_sla.backends import pytorch_backend

    solver = getattr(pytorch_backend, name)
    row, column = sparse(torch.eye(8))

    def model(a, b):
        return solver(a.flatten(), row, column, (8, 8), b, maxiter=40, **more)

    return Given(model, vectors(8))


@case("torch_sla", "torch_sla.backends.pytorch_backend.pcg_solve", "preconditioned by the diagonal")
def torch_sla_pcg():
    return torch_sla_backend("pcg_solve", rtol=1e-4)


@case("torch_sla", "torch_sla.backends.pytorch_backend.pbicgstab_solve", "four ways out of the loop")
def torch_sla_pbicgstab():
    return torch_sla_backend("pbicgstab_solve", rtol=1e-4, preconditioner="jacobi")


@case("torch_sla", "torch_sla.backends.pytorch_backend.pgmres_solve", "while restarts are left, for the basis")
def torch_sla_pgmres():
    return torch_sla_backend("pgmres_solve", rtol=1e-4, preconditioner="jacobi", restart=6)


@case(
    "torch_sla", "torch_sla.backends.pytorch_backend.minres_solve", "Paige and Saunders' recurrences in Python floats"
)
def torch_sla_minres():
    return torch_sla_backend("minres_solve", rtol=1e-4, preconditioner="none")


@case("torch_sla", "torch_sla.backends.pytorch_backend.lsqr_solve", "bidiagonalisation, seven tests to stop")
def torch_sla_lsqr():
    return torch_sla_backend("lsqr_solve")


@case("torch_sla", "torch_sla.backends.pytorch_backend.lsmr_solve", "the same for the normal residual")
def torch_sla_lsmr():
    return torch_sla_backend("lsmr_solve")
