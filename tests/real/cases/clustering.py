"""Clusters: rounds until the centres stay."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import blobs, randn


@case("kornia", "kornia.contrib.KMeans.fit", "Lloyd's rounds, two breaks, the result in attributes")
def kornia_kmeans():
    from kornia.contrib import KMeans

    centres = randn(3, 2, seed=7)

    def model(x):
        means = KMeans(3, centres, tolerance=1e-6, max_iterations=30, seed=0)
        means.fit(x)
        return means.cluster_centers, means.cluster_assignments

    corners = torch.tensor([[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0]])
    sets = [
        (s, apart * corners[:, None] + randn(3, 10, 2, seed=s, scale=0.7)) for s, apart in ((0, 0.4), (4, 1), (7, 0.4))
    ]
    return Given(model, [(points.reshape(30, 2),) for _, points in sets])


@case("fast_pytorch_kmeans", "fast_pytorch_kmeans.KMeans.fit_predict", "rounds until the error is small")
def fast_kmeans():
    from fast_pytorch_kmeans import KMeans

    def model(x, centres):
        return KMeans(n_clusters=3, max_iter=20).fit_predict(x, centroids=centres)

    return Given(model, [(x := blobs(6, seed=s, apart=c), x[[0, 7, 13]]) for s, c in ((1, 4.0), (2, 0.5), (3, 1.5))])


@case("kmeans-gpu", "kmeans_gpu.KMeans.fit_predict", "the same of another package")
def kmeans_gpu_fit():
    from kmeans_gpu import KMeans

    means = KMeans(n_clusters=3, max_iter=20, tolerance=1e-4)

    def model(x, centres):
        return means.fit_predict(x, centres)

    return Given(model, [(x := blobs(6, seed=s, apart=c), x[[0, 7, 13]]) for s, c in ((1, 4.0), (2, 0.5), (3, 1.5))])


@case("torch-kmeans", "torch_kmeans.KMeans", "a batch of problems, until none of the centres moves")
def torch_kmeans_lloyd():
    from torch_kmeans import KMeans

    means = KMeans(n_clusters=3, max_iter=20, num_init=1, verbose=False)

    def model(x, centres):
        found = means(x, centers=centres)
        return found.labels, found.centers, found.inertia

    sets = [blobs(6, seed=s, apart=c)[None] for s, c in ((1, 4.0), (2, 0.5), (3, 1.5))]
    return Given(model, [(x, x[:, [0, 7, 13]]) for x in sets])


@case("torch-kmeans", "torch_kmeans.SoftKMeans", "soft assignments, and centres that coincide are moved")
def torch_kmeans_soft():
    from torch_kmeans import SoftKMeans

    means = SoftKMeans(n_clusters=3, max_iter=20, num_init=1, verbose=False)

    def model(x, centres):
        found = means(x, centers=centres)
        return found.labels, found.centers

    sets = [blobs(6, seed=s, apart=c)[None] for s, c in ((1, 4.0), (2, 0.5), (3, 1.5))]
    return Given(model, [(x, x[:, [0, 7, 13]]) for x in sets])


@case("pomegranate", "pomegranate.kmeans.KMeans.fit", "until the centres move less than a tolerance")
def pomegranate_kmeans():
    from pomegranate.kmeans import KMeans

    def model(x, centres):
        return KMeans(centroids=centres, max_iter=20).fit(x).centroids

    return Given(model, [(x := blobs(6, seed=s, apart=c), x[[0, 7, 13]]) for s, c in ((1, 4.0), (2, 0.5), (3, 1.5))])


@case("torchclust", "torchclust.centroid.MeanShift.fit", "until no centre moves")
def torchclust_meanshift():
    from torchclust.centroid.meanshift import MeanShift

    def model(x):
        shift = MeanShift(band_width=1.0)
        shift.fit(x)
        return shift.parameters["centroids"]

    return Given(model, [(blobs(4, seed=s, apart=c),) for s, c in ((1, 4.0), (2, 1.0), (3, 8.0))])
