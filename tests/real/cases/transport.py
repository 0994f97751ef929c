"""Optimal transport: scaling rounds until the marginals fit."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import histogram, rand, randn


def problems(*scales, double=False):
    """Two histograms and a cost, which is flat, steep or in between."""
    a, b, cost = histogram(6, seed=1), histogram(7, seed=2), rand(6, 7, seed=3)
    if double:
        a, b, cost = a.double(), b.double(), cost.double()
    return [(a / a.sum(), b / b.sum(), cost * scale) for scale in scales]


@case("POT", "ot.bregman.sinkhorn_knopp", "a break on the error, another one where numbers overflow, for-else")
def pot_sinkhorn_knopp():
    import ot

    def model(a, b, cost):
        return ot.bregman.sinkhorn_knopp(a, b, cost, reg=0.1, numItermax=200, stopThr=1e-5, warn=False)

    return Given(model, problems(1.0, 0.05, 300.0, 4.0))


@case("POT", "ot.bregman.sinkhorn_log", "the same in the log domain")
def pot_sinkhorn_log():
    import ot

    def model(a, b, cost):
        return ot.bregman.sinkhorn_log(a, b, cost, reg=0.1, numItermax=200, stopThr=1e-5, warn=False)

    return Given(model, problems(1.0, 0.05, 4.0))


@case("POT", "ot.bregman.sinkhorn_stabilized", "potentials are absorbed where the scalings grow too large")
def pot_sinkhorn_stabilized():
    import ot

    def model(a, b, cost):
        return ot.bregman.sinkhorn_stabilized(a, b, cost, reg=0.05, numItermax=200, tau=50.0, stopThr=1e-5, warn=False)

    return Given(model, problems(1.0, 0.05, 6.0))


@case("POT", "ot.bregman.sinkhorn_epsilon_scaling", "rounds within rounds of a smaller and smaller regularisation")
def pot_sinkhorn_epsilon_scaling():
    import ot

    def model(a, b, cost):
        return ot.bregman.sinkhorn_epsilon_scaling(
            a, b, cost, reg=0.1, numItermax=20, epsilon0=10.0, numInnerItermax=30, stopThr=1e-4, warn=False
        )

    return Given(model, problems(1.0, 0.05, 4.0))


@case("POT", "ot.bregman.greenkhorn", "the row or the column that is furthest off is scaled next")
def pot_greenkhorn():
    import ot

    def model(a, b, cost):
        return ot.bregman.greenkhorn(a, b, cost, reg=0.1, numItermax=300, stopThr=1e-4, warn=False)

    return Given(model, problems(1.0, 0.05, 3.0))


@case("POT", "ot.bregman.barycenter", "until two rounds agree")
def pot_barycenter():
    import ot

    def model(histograms, cost):
        return ot.bregman.barycenter(histograms, cost, reg=0.05, numItermax=200, stopThr=1e-4, warn=False)

    def given(seed, scale):
        points = torch.arange(6.0)
        stack = torch.stack([histogram(6, seed=seed + each) for each in range(3)], 1)
        return stack, scale * (points[:, None] - points) ** 2 / 25

    return Given(model, [given(1, 1.0), given(2, 0.1), given(3, 5.0)])


@case("POT", "ot.bregman.barycenter_stabilized", "the same with absorption")
def pot_barycenter_stabilized():
    import ot

    def model(histograms, cost):
        return ot.bregman.barycenter_stabilized(histograms, cost, reg=0.05, tau=20.0, numItermax=100, stopThr=1e-4)

    def given(seed, scale):
        points = torch.arange(6.0)
        stack = torch.stack([histogram(6, seed=seed + each) for each in range(3)], 1)
        return stack, scale * (points[:, None] - points) ** 2 / 25

    return Given(model, [given(1, 1.0), given(2, 0.1), given(3, 5.0)])


@case("POT", "ot.unbalanced.sinkhorn_unbalanced", "marginals that need not fit, with a check for overflow")
def pot_unbalanced_sinkhorn():
    import ot

    def model(a, b, cost):
        return ot.unbalanced.sinkhorn_unbalanced(
            a, b, cost, reg=0.1, reg_m=1.0, numItermax=200, stopThr=1e-5, warn=False
        )

    return Given(model, problems(1.0, 0.05, 300.0, 4.0))


@case("POT", "ot.unbalanced.mm_unbalanced", "majorisation and minimisation until the plan stays")
def pot_unbalanced_mm():
    import ot

    def model(a, b, cost):
        return ot.unbalanced.mm_unbalanced(a, b, cost, reg_m=1.0, div="kl", numItermax=300, stopThr=1e-5)

    return Given(model, problems(1.0, 0.05, 4.0))


@case("POT", "ot.partial.entropic_partial_wasserstein", "Dykstra's projections, undone where numbers overflow")
def pot_partial_entropic():
    import ot

    def model(a, b, cost):
        return ot.partial.entropic_partial_wasserstein(a, b, cost, reg=0.2, m=0.6, numItermax=200, stopThr=1e-5)

    return Given(model, problems(1.0, 0.05, 8.0))


@case("POT", "ot.gromov.entropic_gromov_wasserstein", "Sinkhorn rounds within gradient rounds")
def pot_gromov_entropic():
    import ot

    def model(x, y):
        p, q = torch.full((6,), 1 / 6), torch.full((6,), 1 / 6)
        return ot.gromov.entropic_gromov_wasserstein(
            torch.cdist(x, x), torch.cdist(y, y), p, q, epsilon=0.5, max_iter=10, tol=1e-4, numItermax=50, warn=False
        )

    return Given(
        model, [(randn(6, 2, seed=s), randn(6, 2, seed=s + 9, scale=c)) for s, c in ((1, 1.0), (2, 0.3), (3, 2.0))]
    )


@case("POT", "ot.gromov.BAPG_gromov_wasserstein", "alternating projections until marginals fit and the plan stays")
def pot_gromov_bapg():
    import ot

    def model(x, y):
        p, q = torch.full((6,), 1 / 6), torch.full((6,), 1 / 6)
        return ot.gromov.BAPG_gromov_wasserstein(
            torch.cdist(x, x), torch.cdist(y, y), p, q, epsilon=0.5, max_iter=60, tol=1e-4
        )

    return Given(
        model, [(randn(6, 2, seed=s), randn(6, 2, seed=s + 9, scale=c)) for s, c in ((1, 1.0), (2, 0.3), (3, 2.0))]
    )


@case("POT", "ot.gaussian.bures_barycenter_fixpoint", "matrix square roots until the covariance stays")
def pot_bures_barycenter():
    import ot

    def model(means, covariances):
        return ot.gaussian.bures_wasserstein_barycenter(means, covariances, num_iter=50, eps=1e-5)

    def given(seed, scale):
        roots = randn(3, 2, 2, seed=seed, scale=scale)
        return randn(3, 2, seed=seed), roots @ roots.mT + 0.5 * torch.eye(2)

    return Given(model, [given(1, 1.0), given(2, 0.1), given(3, 3.0)])


@case("POT", "ot.lp.solver_circle.wasserstein_circle", "a binary search on the circle that stops at a tolerance")
def pot_circle():
    import ot

    return Given(
        lambda u, v: ot.wasserstein_circle(u, v, p=2),
        [
            (rand(5, 1, seed=1), rand(6, 1, seed=2)),
            (rand(5, 1, seed=3) * 0.1, rand(6, 1, seed=4)),
            (rand(4, 1), rand(4, 1)),
        ],
    )


@case("POT", "ot.lowrank.lowrank_sinkhorn", "mirror descent with Dykstra's rounds inside")
def pot_lowrank():
    import ot

    def model(x, y):
        return ot.lowrank.lowrank_sinkhorn(x, y, rank=2, init="deterministic", numItermax=20, stopThr=1e-4, warn=False)[
            :3
        ]

    return Given(model, [(randn(6, 2, seed=s), randn(7, 2, seed=s + 9) + c) for s, c in ((1, 1.0), (2, 0.0), (3, 4.0))])


@case("POT", "ot.optim.gcg", "generalised conditional gradient, with a line search by Armijo's rule")
def pot_gcg():
    import ot

    def model(a, b, cost):
        return ot.optim.gcg(
            a, b, cost, 0.2, 0.5, lambda g: 0.5 * (g**2).sum(), lambda g: g, numItermax=10, numInnerItermax=50
        )

    return Given(model, problems(1.0, 0.05, 3.0, double=True))


@case("POT", "ot.bregman.empirical_sinkhorn_divergence", "three transports, of points and of each to itself")
def pot_sinkhorn_divergence():
    import ot

    return Given(
        lambda a, b, cost: ot.bregman.empirical_sinkhorn_divergence(a, b, reg=cost.mean() + 0.5, warn=False),
        [
            (randn(5, 2, seed=1), randn(6, 2, seed=2), rand(3)),
            (randn(5, 2, seed=3) * 3, randn(6, 2, seed=4), rand(3) * 4),
            (randn(5, 2, seed=5), randn(6, 2, seed=5), rand(3)),
        ],
    )


@case("geomloss", "geomloss.SamplesLoss('sinkhorn')", "a schedule of scales that begins at the diameter of the points")
def geomloss_sinkhorn():
    import geomloss

    loss = geomloss.SamplesLoss("sinkhorn", p=2, blur=0.3, scaling=0.6, backend="tensorized")
    sets = [(randn(6, 2, seed=s, scale=c), randn(7, 2, seed=s + 9)) for s, c in ((1, 1.0), (2, 10.0), (3, 0.1))]
    return Given(loss, sets)


@case("mdot-tnt", "mdot_tnt.solve_OT", "truncated Newton steps with conjugate gradients and a line search inside")
def mdot_solve():
    import mdot_tnt

    def model(a, b, cost):
        return mdot_tnt.solve_OT(a, b, cost, gamma_f=64.0)

    return Given(model, problems(1.0, 0.3, 0.01, double=True))


@case("mdot-tnt", "mdot_tnt.solve_OT_batched", "the same of a batch, with a mask of what is not done")
def mdot_batched():
    import mdot_tnt

    def model(a, b, cost):
        return mdot_tnt.solve_OT_batched(a, b, cost, gamma_f=32.0)

    def given(seed, scale):
        a = torch.stack([histogram(6, seed=seed), histogram(6, seed=seed + 1)]).double()
        b = torch.stack([histogram(6, seed=seed + 2), histogram(6, seed=seed + 3)]).double()
        return a / a.sum(1, keepdim=True), b / b.sum(1, keepdim=True), scale * rand(6, 6, seed=seed).double()

    return Given(model, [given(1, 1.0), given(2, 0.1), given(3, 0.5)])


@case("torchgw", "torchgw._solver._sinkhorn_torch", "the error is looked at every few rounds")
def torchgw_sinkhorn():
    from torchgw._solver import _sinkhorn_torch

    def model(a, b, cost):
        return _sinkhorn_torch(a, b, cost, reg=0.1, max_iter=100, tol=1e-4, check_every=5)

    return Given(model, problems(1.0, 0.05, 4.0))
