"""Roots and fixed points: iterations until the value is near zero, with line searches."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import frozen, randn


def cubic(x, target):
    return x**3 + x - target


def starts():
    return [(torch.ones(4), randn(4, seed=s, scale=c)) for s, c in ((1, 1.0), (2, 10.0), (3, 0.1))]


@case("xitorch", "xitorch.optimize.rootfinder(method='broyden1')", "Broyden's method with Armijo's line search")
def xitorch_broyden1():
    from xitorch.optimize import rootfinder

    return Given(lambda y, t: rootfinder(cubic, y, params=(t,), method="broyden1", f_tol=1e-5, maxiter=30), starts())


@case("xitorch", "xitorch.optimize.rootfinder(method='broyden2')", "the second of Broyden's methods")
def xitorch_broyden2():
    from xitorch.optimize import rootfinder

    return Given(lambda y, t: rootfinder(cubic, y, params=(t,), method="broyden2", f_tol=1e-5, maxiter=30), starts())


@case("xitorch", "xitorch.optimize.rootfinder(method='linearmixing')", "damped steps")
def xitorch_linearmixing():
    from xitorch.optimize import rootfinder

    def model(y, t):
        return rootfinder(lambda y, t: 2 * y + torch.tanh(y) - t, y, params=(t,), method="linearmixing", f_tol=1e-4)

    return Given(model, starts())


@case("xitorch", "xitorch.optimize.equilibrium", "a fixed point as a root")
def xitorch_equilibrium():
    from xitorch.optimize import equilibrium

    def model(y, t):
        return equilibrium(lambda y, t: 0.5 * torch.tanh(y) + t, y, params=(t,), method="broyden1", f_tol=1e-5)

    return Given(model, starts())


@case("xitorch", "xitorch.optimize.minimize(method='gd')", "gradient steps until value and position stay")
def xitorch_gradient_descent():
    from xitorch.optimize import minimize

    def model(y, t):
        return minimize(lambda y, t: ((y - t) ** 2).sum(), y, params=(t,), method="gd", step=0.1, maxiter=60)

    return Given(model, starts())


@case("torchdyn", "torchdyn.numerics.solvers.root.root_find", "Broyden's method, a search that halves the step")
def torchdyn_broyden():
    from torchdyn.numerics.solvers.root import root_find

    def model(y, t):
        return root_find(
            lambda z: z + 0.3 * torch.tanh(z) - t, y, method="broyden", f_tol=1e-4, maxiters=30, verbose=False
        )[0]

    return Given(model, [(y[None], t[None]) for y, t in starts()])


@case("zuko", "zuko.utils.bisection", "a fixed number of halvings with torch.where")
def zuko_bisection():
    from zuko.utils import bisection

    def model(y):
        return bisection(lambda x: x**3 + x, y, -10.0, 10.0, 20)

    return Given(model, [(randn(4, seed=s, scale=c),) for s, c in ((1, 1.0), (2, 50.0), (3, 0.0))])


@case("torchvinecopulib", "torchvinecopulib.util.solve_ITP", "interpolate, truncate, project; a break on the width")
def torchvinecopulib_itp():
    from torchvinecopulib.util import solve_ITP

    def model(t):
        return solve_ITP(
            lambda x: x**3 + x - t, torch.full((4,), -10.0).double(), torch.full((4,), 10.0).double(), 1e-6
        )

    return Given(model, [(randn(4, seed=s, scale=c).double(),) for s, c in ((1, 1.0), (2, 50.0), (3, 1e-4))])


@case("normflows", "normflows.flows.residual.iResBlock._inverse_fixed_point", "a residual block undone by iteration")
def normflows_residual_inverse():
    import normflows

    net = normflows.nets.LipschitzMLP([3, 16, 3], init_zeros=False, lipschitz_const=0.9)
    block = frozen(normflows.flows.residual.iResBlock(net, brute_force=False), scale=1.5)
    return Given(block.inverse, [(randn(4, 3, seed=1, scale=scale),) for scale in (1.0, 40.0, 0.1)])


@case("torch_sla", "torch_sla.nonlinear_solve(method='newton')", "Newton with Armijo's line search")
def torch_sla_newton():
    import torch_sla

    matrix = torch.eye(6) * 3 + torch.diag(torch.ones(5), 1) + torch.diag(torch.ones(5), -1)

    def model(u, f):
        return torch_sla.nonlinear_solve(lambda u, f: matrix @ u + u**3 - f, u, f, tol=1e-5)

    return Given(model, [(torch.zeros(6), randn(6, seed=s, scale=c)) for s, c in ((1, 1.0), (2, 20.0), (3, 0.01))])


@case("torch_sla", "torch_sla.nonlinear_solve(method='picard')", "fixed-point rounds until the residual is small")
def torch_sla_picard():
    import torch_sla

    def model(u, f):
        return torch_sla.nonlinear_solve(lambda u, f: u + 0.3 * torch.tanh(u) - f, u, f, method="picard", tol=1e-5)

    return Given(model, [(torch.zeros(6), randn(6, seed=s, scale=c)) for s, c in ((1, 1.0), (2, 20.0), (3, 0.01))])


@case(
    "torch_sla", "torch_sla.nonlinear_solve(method='anderson')", "a history of the last rounds, mixed by least squares"
)
def torch_sla_anderson():
    import torch_sla

    def model(u, f):
        return torch_sla.nonlinear_solve(lambda u, f: u + 0.3 * torch.tanh(u) - f, u, f, method="anderson", tol=1e-5)

    return Given(model, [(torch.zeros(6), randn(6, seed=s, scale=c)) for s, c in ((1, 1.0), (2, 20.0), (3, 0.01))])


@case(
    "nflows", "nflows.transforms.InverseTransform(PiecewiseRationalQuadraticCDF)", "only what is inside is transformed"
)
def nflows_rational_quadratic():
    from nflows.transforms.splines import unconstrained_rational_quadratic_spline

    def model(x, w, h, d):
        return unconstrained_rational_quadratic_spline(x, w, h, d, tail_bound=3.0)

    def given(scale, seed):
        return randn(6, seed=seed, scale=scale), randn(6, 4, seed=2), randn(6, 4, seed=3), randn(6, 3, seed=4)

    outside = (torch.full((6,), 5.0), *given(1.0, 1)[1:])
    return Given(model, [given(1.0, 1), given(4.0, 2), outside])


@case(
    "nflows",
    "nflows.transforms.splines.unconstrained_cubic_spline",
    "roots of cubics by three formulas, chosen by mask",
)
def nflows_cubic_inverse():
    from nflows.transforms.splines import unconstrained_cubic_spline

    def model(x, w, h, left, right):
        return unconstrained_cubic_spline(x, w, h, left, right, inverse=True, tail_bound=3.0)

    def given(scale, seed):
        left, right = randn(6, 1, seed=4), randn(6, 1, seed=5)
        return randn(6, seed=seed, scale=scale), randn(6, 4, seed=2), randn(6, 4, seed=3), left, right

    outside = (torch.full((6,), 5.0), *given(1.0, 1)[1:])
    return Given(model, [given(1.0, 1), given(4.0, 2), outside])


@case("nflows", "nflows.transforms.nonlinearities.Sigmoid.inverse", "raises for what is outside, else a logarithm")
def nflows_logit():
    from nflows.transforms import Sigmoid

    transform = Sigmoid()
    sets = [torch.rand(4, 2) * 0.8 + 0.1, torch.full((4, 2), 0.999), torch.full((4, 2), 1.5)]
    return Given(lambda x: transform.inverse(x), [(each,) for each in sets], may_raise=True)  # noqa: PLW0108
