"""Padding that cuts one edge and lets another grow."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import dy2st


@pytest.mark.parametrize(
    ("sides", "mode"),
    [((2, -4), "replicate"), ((-4, 2), "replicate"), ((3, -3), "reflect"), ((-4, 3), "reflect"), ((-1, -1), "reflect")],
)
def test_what_is_cut_is_reflected_and_repeated(sides, mode):
    """onnxruntime cuts first, and has nothing then that it could reflect or repeat."""
    sets = [(torch.randn(2, 3, n),) for n in (5, 6)]
    report = dy2st.check(lambda x: functional.pad(x, sides, mode), sets, dynamic_shapes=({2: "n"},))
    assert report.ok, str(report)
