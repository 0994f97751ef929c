"""Minimisers: line searches, trust regions, and the tests that end them."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import rand, randn, spd


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def starts():
    return [(torch.tensor([-1.2, 1.0]),), (torch.tensor([0.9, 0.8]),), (torch.tensor([1.0, 1.0]),)]


def torchmin_with(method, function=rosenbrock, **options):
    from torchmin import minimize

    def model(x):
        found = minimize(function, x, method, max_iter=15, options=options)
        return found.x, found.fun

    return Given(model, starts())


@case("pytorch-minimize", "torchmin.minimize('bfgs')", "a strong Wolfe line search in each step")
def torchmin_bfgs():
    return torchmin_with("bfgs")


@case("pytorch-minimize", "torchmin.minimize('l-bfgs')", "the last ten steps in lists")
def torchmin_lbfgs():
    return torchmin_with("l-bfgs")


@case("pytorch-minimize", "torchmin.minimize('cg')", "Polak and Ribiere's directions")
def torchmin_cg():
    return torchmin_with("cg")


@case("pytorch-minimize", "torchmin.minimize('newton-cg')", "conjugate gradients that stop at negative curvature")
def torchmin_newton_cg():
    return torchmin_with("newton-cg")


@case("pytorch-minimize", "torchmin.minimize('newton-exact')", "Cholesky, or something else where that fails")
def torchmin_newton_exact():
    return torchmin_with("newton-exact")


@case("pytorch-minimize", "torchmin.minimize('dogleg')", "a trust region, three kinds of step")
def torchmin_dogleg():
    return torchmin_with("dogleg", lambda x: (x**4).sum() + (x[0] - 2 * x[1]) ** 2)


@case("pytorch-minimize", "torchmin.minimize('trust-ncg')", "a trust region with Steihaug's conjugate gradients")
def torchmin_trust_ncg():
    return torchmin_with("trust-ncg")


@case("pytorch-minimize", "torchmin.minimize('trust-exact')", "a trust region, the multiplier found by iteration")
def torchmin_trust_exact():
    return torchmin_with("trust-exact")


@case("pytorch-minimize", "torchmin.least_squares(method='trf')", "steps that shrink until they reduce the cost")
def torchmin_least_squares():
    from torchmin import least_squares

    def model(x):
        return least_squares(lambda x: torch.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]]), x, max_nfev=20).x

    return Given(model, starts())


@case("pytorch-minimize", "torchmin.line_search.backtracking", "a for with a break at Armijo's rule")
def torchmin_backtracking():
    from torchmin.line_search import backtracking

    def model(x, direction):
        def at(x, t, d):
            return rosenbrock(x + t * d), direction

        return backtracking(at, x, torch.tensor(1.0), direction, rosenbrock(x), -direction, decay=0.5)

    way = torch.tensor([1.0, 0.5])
    return Given(model, [(each[0], way * scale) for each, scale in zip(starts(), (1.0, 0.01, 3.0), strict=True)])


@case("qpth", "qpth.qp.QPFunction", "an interior-point method that stops where it no longer improves")
def qpth_interior_point():
    from qpth.qp import QPFunction

    def model(matrix, p, g, h):
        none = torch.empty(0).double()
        return QPFunction(verbose=-1, check_Q_spd=False)(matrix, p, g, h, none, none)

    def given(seed, scale):
        matrix = spd(3, seed=seed, shift=1.0).double()[None].repeat(2, 1, 1)
        p, g = randn(2, 3, seed=seed + 1, scale=scale).double(), randn(2, 4, 3, seed=seed + 2).double()
        return matrix, p, g, rand(2, 4, seed=seed + 3).double() + 0.5

    return Given(model, [given(1, 1.0), given(5, 10.0), given(9, 0.01)])


@case("torchjd", "torchjd.aggregation._pcd._solve_qp", "an active set that grows and shrinks")
def torchjd_active_set():
    from torchjd.aggregation._pcd import _solve_qp

    def model(matrix):
        return _solve_qp(matrix, torch.full((2,), 0.1).double())

    sets = [spd(3, seed=1, shift=0.2), torch.eye(3), torch.tensor([[1, -0.9, 0], [-0.9, 1, 0], [0, 0, 1.0]])]
    return Given(model, [(each.double(),) for each in sets])


@case("torchjd", "torchjd.aggregation.IMTLG", "a sum of zero gives zero weights")
def torchjd_imtlg():
    from torchjd.aggregation import IMTLG

    return Given(IMTLG(), [(randn(3, 5, seed=1),), (torch.zeros(3, 5),), (torch.eye(3, 5),)])


@case("torchjd", "torchjd.aggregation.Krum", "the gradients that are nearest to the others")
def torchjd_krum():
    from torchjd.aggregation import Krum

    return Given(Krum(n_byzantine=1, n_selected=2), [(randn(5, 4, seed=1),), (torch.zeros(5, 4),), (torch.eye(5, 4),)])


@case("torch", "torch.optim.LBFGS.step", "torch's own strong Wolfe search, on the values of a closure")
def torch_lbfgs_step():
    def model(x):
        point = x.clone().requires_grad_()
        optimiser = torch.optim.LBFGS([point], max_iter=5, line_search_fn="strong_wolfe")

        def closure():
            optimiser.zero_grad()
            with torch.enable_grad():
                loss = rosenbrock(point)
                loss.backward()
            return loss

        optimiser.step(closure)
        return point.detach()

    return Given(model, starts())
