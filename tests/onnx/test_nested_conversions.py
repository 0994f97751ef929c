"""Operators whose form changed with an opset, in the bodies of loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import dy2st


def spectra(x: Tensor) -> Tensor:
    """Transforms along either dimension, to and fro."""
    while x.sum() > 1:
        x = torch.fft.irfft(torch.fft.rfft(x.T, dim=0), n=4, dim=0).T / 2
        x = torch.fft.fft2(x).real[:, :4] / 9
    return x


def linear(x: Tensor) -> Tensor:
    """An image, sampled."""
    while x.sum() > 1:
        x = functional.grid_sample(x[None, None], torch.full((1, 4, 4, 2), 0.2), align_corners=False)[0, 0] / 2
    return x


def cubic(x: Tensor) -> Tensor:
    """An image, sampled with another mode."""
    while x.sum() > 1:
        grid = torch.full((1, 4, 4, 2), 0.2)
        x = functional.grid_sample(x[None, None], grid, "bicubic", align_corners=False)[0, 0] / 2
    return x


@pytest.mark.parametrize("model", [spectra, linear, cubic])
def test_operators_of_opset_20_in_a_loop(model: object) -> None:
    inputs = [(scale * torch.rand(4, 4, generator=torch.Generator().manual_seed(0)),) for scale in (1, 9, 0)]
    assert dy2st.check(model, inputs).ok
