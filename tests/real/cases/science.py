"""Integrals, molecules, factorisations, and attacks on a classifier."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import rand, randn


@case("torchquad", "torchquad.Simpson.integrate", "a grid over the domain, and checks of it")
def torchquad_simpson():
    from torchquad import Simpson

    def model(domain):
        return Simpson().integrate(lambda x: torch.sin(x[:, 0]) + x[:, 1] ** 2, dim=2, N=81, integration_domain=domain)

    sets = ([[0.0, 1], [-1, 1]], [[0.0, 9], [2, 3]], [[0.0, 0.0], [1, 1]])
    return Given(model, [(torch.tensor(each),) for each in sets])


@case("torchattacks", "torchattacks.DeepFool", "steps until the class changes, for each image by itself")
def torchattacks_deepfool():
    import torchattacks

    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8, 3)).eval()
    with torch.no_grad():
        net[1].weight.copy_(randn(3, 8))
    attack = torchattacks.DeepFool(net, steps=5)

    def model(images, labels):
        with torch.enable_grad():
            return attack(images, labels)

    sets = [(rand(2, 1, 2, 4, seed=s), torch.tensor(each)) for s, each in ((1, [0, 1]), (2, [2, 2]), (3, [1, 0]))]
    return Given(model, sets)


@case("nmf-torch", "nmf.run_nmf", "multiplicative updates until the error stays")
def nmf_updates():
    from nmf import run_nmf

    def model(x):
        left, right, error = run_nmf(x, 2, init="nndsvda", algo="mu", mode="batch", batch_max_iter=30, tol=1e-3)
        return torch.as_tensor(left), torch.as_tensor(right), error

    return Given(model, [(rand(6, 5, seed=s) + c,) for s, c in ((1, 0.0), (2, 1.0), (3, 5.0))])


@case("torchani", "torchani.neighbors.discard_outside_cutoff", "pairs of atoms that are near each other")
def torchani_neighbours():
    from torchani.neighbors import all_pairs

    def model(species, coordinates):
        found = all_pairs(1.5, species, coordinates)
        return found.indices, found.distances

    species = torch.tensor([[0, 1, 1, 2, 0]])
    return Given(model, [(species, randn(1, 5, 3, seed=s, scale=c)) for s, c in ((1, 1.0), (2, 0.1), (3, 0.6))])
