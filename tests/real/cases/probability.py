"""Distributions and Bayesian optimisation: special cases by mask, rejection, active sets."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import rand, randn, spd


@case("pyro-ppl", "pyro.distributions.stable._standard_stable", "a formula of its own near a hole, with given noise")
def pyro_stable():
    from pyro.distributions.stable import _standard_stable

    def model(alpha, beta, uniform, exponential):
        return _standard_stable(alpha, beta, uniform, exponential, coords="S0")

    noise = (rand(5, seed=1) * 3 - 1.5, rand(5, seed=2) + 0.1)
    alphas = (torch.full((5,), 1.5), torch.tensor([0.5, 1.0, 1.5, 1.001, 0.999]), torch.ones(5))
    return Given(model, [(alpha, torch.full((5,), 0.3), *noise) for alpha in alphas])


@case("pyro-ppl", "pyro.distributions.hmm._sequential_logmatmulexp", "halved until one matrix is left")
def pyro_hmm_product():
    from pyro.distributions.hmm import _sequential_logmatmulexp

    sets = [(randn(n, 3, 3, seed=n),) for n in (8, 5, 2, 13)]
    return Given(_sequential_logmatmulexp, sets, ({0: torch.export.Dim("time", min=2, max=64)},))


@case("pyro-ppl", "pyro.distributions.NanMaskedNormal.log_prob", "elements that are there: all, some or none")
def pyro_nan_masked():
    from pyro.distributions import NanMaskedNormal

    def model(x):
        return NanMaskedNormal(torch.zeros(4), torch.ones(4), validate_args=False).log_prob(x)

    nan = float("nan")
    return Given(model, [(randn(4),), (torch.tensor([1.0, nan, 2.0, nan]),), (torch.full((4,), nan),)])


@case("pyro-ppl", "pyro.ops.stats.effective_sample_size", "autocorrelations until they are negative")
def pyro_effective_size():
    from pyro.ops.stats import effective_sample_size

    return Given(
        effective_sample_size, [(randn(2, 16, seed=1),), (randn(2, 16, seed=2).cumsum(1),), (randn(2, 16, seed=3),)]
    )


@case("pyro-ppl", "pyro.ops.stats.hpdi", "the shortest interval that holds a share")
def pyro_hpdi():
    from pyro.ops.stats import hpdi

    return Given(lambda x: hpdi(x, 0.8), [(randn(20, seed=1),), (rand(20, seed=2) ** 4,), (torch.ones(20),)])


@case("pyro-ppl", "pyro.ops.stats.energy_score_empirical", "pairs in blocks of a size that fits")
def pyro_energy_score():
    from pyro.ops.stats import energy_score_empirical

    return Given(energy_score_empirical, [(randn(6, 3, seed=s), randn(3, seed=s + 1)) for s in (1, 4, 7)])


@case("pyro-ppl", "pyro.distributions.OneOneMatching.log_partition_function", "belief propagation")
def pyro_matching():
    from pyro.distributions import OneOneMatching

    def model(logits):
        return OneOneMatching(logits, bp_iters=10, validate_args=False).log_partition_function

    return Given(model, [(randn(4, 4, seed=s, scale=c),) for s, c in ((1, 1.0), (2, 5.0), (3, 0.0))])


@case("pyro-ppl", "pyro.distributions.von_mises_3d.VonMises3D.log_prob", "raises for what is no unit vector")
def pyro_von_mises():
    from pyro.distributions import VonMises3D

    def model(x, concentration):
        return VonMises3D(concentration, validate_args=True).log_prob(x)

    unit = torch.nn.functional.normalize(randn(3, seed=1), dim=0)
    return Given(model, [(unit, randn(3)), (-unit, 5 * randn(3)), (unit * 2, randn(3))], may_raise=True)


@case("torch", "torch.distributions.Categorical (validate_args=True)", "raises where a constraint does not hold")
def torch_distribution_checks():
    def model(probabilities, value):
        return torch.distributions.Categorical(probabilities, validate_args=True).log_prob(value)

    good = torch.tensor([0.2, 0.3, 0.5])
    sets = [(good, torch.tensor(1)), (good, torch.tensor(5)), (good - 0.3, torch.tensor(0))]
    return Given(model, sets, may_raise=True)


@case("torch", "torch.distributions.VonMises.log_prob", "a Bessel function in two ranges")
def torch_von_mises():
    def model(x, concentration):
        return torch.distributions.VonMises(torch.zeros(3), concentration, validate_args=False).log_prob(x)

    return Given(model, [(randn(3), torch.full((3,), k)) for k in (0.5, 3.0, 20.0)])


@case(
    "botorch",
    "botorch.posteriors.fully_bayesian.batched_bisect",
    "raises without a sign change, else halves until near",
)
def botorch_bisect():
    from botorch.posteriors.fully_bayesian import batched_bisect

    def model(shift):
        return batched_bisect(
            lambda x: torch.tanh(x - shift), 0.2, torch.tensor([[-9.0], [9.0]]).expand(2, 3), tol=1e-4
        )

    return Given(model, [(randn(3, seed=s, scale=c),) for s, c in ((1, 1.0), (2, 3.0), (3, 0.0))])


@case(
    "botorch", "botorch.utils.probability.bvn.bvn", "limits that are flipped where needed, three ranges of correlation"
)
def botorch_bivariate_normal():
    from botorch.utils.probability.bvn import bvn

    def given(correlation, seed):
        low, high = randn(4, seed=seed), randn(4, seed=seed + 1)
        return (
            torch.full((4,), correlation).double(),
            low.double(),
            high.double(),
            (low + 1).double(),
            (high + 2).double(),
        )

    return Given(bvn, [given(0.2, 1), given(0.8, 3), given(-0.97, 5)])


@case("botorch", "botorch.utils.probability.MVNXPB.solve", "variables in an order that depends on their probability")
def botorch_mvnxpb():
    from botorch.utils.probability import MVNXPB

    def model(covariance, bounds):
        return MVNXPB(covariance, bounds).solve()

    def given(seed):
        low = randn(4, seed=seed).double() - 1
        return spd(4, seed=seed, shift=0.5).double(), torch.stack([low, low + 2], -1)

    return Given(model, [given(1), given(2), given(3)])


@case("botorch", "botorch.utils.multi_objective.pareto.is_non_dominated", "points that none is better than")
def botorch_pareto():
    from botorch.utils.multi_objective.pareto import is_non_dominated

    sets = [randn(8, 2, seed=1), torch.ones(8, 2), torch.stack([torch.arange(8.0), -torch.arange(8.0)], 1)]
    return Given(is_non_dominated, [(each,) for each in sets])


@case("botorch", "botorch.utils.multi_objective.pareto._is_non_dominated_loop", "the same, one point after the other")
def botorch_pareto_loop():
    from botorch.utils.multi_objective.pareto import _is_non_dominated_loop

    sets = [randn(8, 2, seed=1), torch.ones(8, 2), torch.stack([torch.arange(8.0), -torch.arange(8.0)], 1)]
    return Given(lambda y: _is_non_dominated_loop(y), [(each,) for each in sets])  # noqa: PLW0108


@case(
    "botorch", "botorch.utils.multi_objective.hypervolume.Hypervolume.compute", "linked lists, sorted by each objective"
)
def botorch_hypervolume():
    from botorch.utils.multi_objective.hypervolume import Hypervolume

    volume = Hypervolume(torch.zeros(2))
    sets = [torch.tensor([[1.0, 3], [2, 2], [3, 1]]), torch.tensor([[1.0, 1], [-1, 4], [2, -3]]), -torch.ones(3, 2)]
    return Given(lambda y: volume.compute(y), [(each,) for each in sets])  # noqa: PLW0108


@case("botorch", "botorch.utils.probability.linalg.augment_cholesky", "raises or jitters where it is not definite")
def botorch_augment_cholesky():
    from botorch.utils.probability.linalg import augment_cholesky

    def model(a, bottom):
        return augment_cholesky(torch.linalg.cholesky(a), torch.ones(1, 1) * 2, bottom)

    return Given(model, [(spd(3, seed=s, shift=1.0), randn(1, 3, seed=s, scale=0.1)) for s in (1, 2, 3)])


@case("botorch", "botorch.utils.probability.utils.log_prob_normal_in", "intervals that lie right of zero are mirrored")
def botorch_log_prob():
    from botorch.utils.probability.utils import log_prob_normal_in

    sets = [
        (-torch.ones(3), torch.ones(3)),
        (torch.tensor([1.0, -2, 3]), torch.tensor([2.0, -1, 4])),
        (torch.ones(3),) * 2,
    ]
    return Given(log_prob_normal_in, [tuple(x.double() for x in each) for each in sets], may_raise=True)


@case("botorch", "botorch.models.utils.assorted.check_no_nans", "raises where there is a NaN")
def botorch_no_nans():
    from botorch.models.utils import check_no_nans

    def model(x):
        check_no_nans(x)
        return x * 2

    return Given(model, [(randn(3),), (torch.tensor([1.0, float("nan"), 2.0]),), (torch.zeros(3),)], may_raise=True)


@case("gpytorch", "gpytorch.functions.log_normal_cdf", "a rational function and a series, each where it holds")
def gpytorch_log_normal_cdf():
    from gpytorch.functions import log_normal_cdf

    return Given(log_normal_cdf, [(randn(5, seed=s, scale=c),) for s, c in ((1, 1.0), (2, 9.0), (3, 0.01))])


@case("gpytorch", "gpytorch.kernels.RBFKernelGrad", "equal inputs get a symmetric matrix")
def gpytorch_rbf_grad():
    from gpytorch.kernels import RBFKernelGrad

    from tests.real.data import frozen

    kernel = frozen(RBFKernelGrad())
    x = randn(3, 2, seed=1)
    return Given(lambda a, b: kernel.forward(a, b), [(x, x), (x, randn(3, 2, seed=2)), (x, x + 1)])  # noqa: PLW0108


@case("gpytorch", "gpytorch.utils.interpolation.Interpolation.interpolate", "points at the edges of a grid")
def gpytorch_interpolation():
    from gpytorch.utils.interpolation import Interpolation

    def model(x):
        return Interpolation().interpolate([torch.linspace(0, 1, 8)], x)

    return Given(model, [(rand(5, 1, seed=1),), (torch.tensor([[0.01], [0.5], [0.99]] * 2)[:5],), (rand(5, 1) * 0.1,)])
