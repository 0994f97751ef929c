"""Batch normalisation in training mode normalises by the batch, in the file as in eager."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

import dy2st


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.BatchNorm1d(3), (5, 3)),
        (nn.BatchNorm1d(3, affine=False), (5, 3)),
        (nn.BatchNorm1d(3), (5, 3, 4)),
        (nn.BatchNorm2d(3, momentum=0.3), (5, 3, 2, 2)),
        (nn.BatchNorm1d(3).double(), (5, 3)),
    ],
)
def test_the_batch_decides(module: nn.Module, shape: tuple[int, ...]):
    dtype = next((each.dtype for each in module.parameters()), torch.float32)
    inputs = [(torch.randn(n, *shape[1:], dtype=dtype) * 3 + 2,) for n in (shape[0], 2, 7)]
    shapes = ({0: Dim("n", min=2)},)
    dy2st.check(module.train(), inputs, dynamic_shapes=shapes).raise_if_different()
