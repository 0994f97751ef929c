"""Small seeded tensors, of which the inputs and weights of the cases are made."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def randn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


def rand(*shape: int, seed: int = 0) -> Tensor:
    """Numbers between 0 and 1."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def randint(low: int, high: int, *shape: int, seed: int = 0) -> Tensor:
    """Integers from ``low`` to below ``high``."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def spd(n: int, *, seed: int, shift: float) -> Tensor:
    """A symmetric positive definite matrix; the larger the shift, the better its condition."""
    root = randn(n, n, seed=seed)
    return root @ root.T / n + shift * torch.eye(n)


def histogram(n: int, *, seed: int) -> Tensor:
    """Positive weights that sum to 1."""
    weights = rand(n, seed=seed) + 0.1
    return weights / weights.sum()


def boxes(n: int, *, seed: int, spread: float) -> Tensor:
    """Boxes as corners; the smaller the spread, the more they overlap."""
    corner = rand(n, 2, seed=seed) * spread
    return torch.cat([corner, corner + 6 + 4 * rand(n, 2, seed=seed + 100)], 1)


def blobs(n: int, *, seed: int, apart: float, dims: int = 2) -> Tensor:
    """Points around three centres."""
    centres = apart * torch.eye(3, dims)
    return (centres[:, None] + randn(3, n, dims, seed=seed, scale=0.5)).reshape(3 * n, dims)


def frozen(module: nn.Module, *, scale: float = 1.0) -> nn.Module:
    """The module in evaluation, with seeded weights that no gradient is wanted of."""
    module.eval()
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            if parameter.is_floating_point() and parameter.dim() > 1:
                parameter.copy_(randn(*parameter.shape, seed=number, scale=scale / parameter.shape[-1] ** 0.5))
            parameter.requires_grad_(False)
    return module


class Field(nn.Module):
    """A small vector field for solvers of differential equations."""

    def __init__(self, size: int = 3, *, gain: float = 1.0) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(size, 8), nn.Linear(8, size)
        self.gain = gain
        frozen(self)

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        """The derivative of ``y``."""
        return self.gain * self.outer(torch.tanh(self.inner(y))) - y
