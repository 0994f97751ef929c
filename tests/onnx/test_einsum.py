"""``einsum`` in a file, ellipses too: these are written as letters."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import dy2st

CASES = [
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("...ij,...jk->...ik", (3, 4), (6, 2, 4, 5)),
    ("...i,...i", (2, 3), (2, 3)),
    ("...i,...j", (2, 3), (4,)),
    ("i...,i...->...", (3, 2), (3, 2)),
    ("...ii->...i", (2, 3, 3)),
    ("a...b,b...->a...", (2, 5, 3), (3, 5)),
    ("...,...->...", (2, 1), (1, 3)),
    ("b...,b...->b", (2, 3, 4), (2, 3, 4)),
    ("...i, ...ij, ...j -> ...", (2, 3), (2, 3, 4), (2, 4)),
]


@pytest.mark.parametrize(("equation", "shapes"), [(equation, shapes) for equation, *shapes in CASES])
def test_ellipses(equation: str, shapes: list[tuple[int, ...]]) -> None:
    def model(*tensors: Tensor) -> Tensor:
        return torch.einsum(equation, *tensors)

    assert dy2st.check(model, [tuple(map(torch.rand, shapes))]).outcome == "equal"


@pytest.mark.parametrize("shapes", [((2, 3, 3), (2, 3)), ((3, 3), (3,)), ((2, 3, 3), (3,))], ids=str)
def test_ellipses_of_different_ranks_in_a_loop(shapes: tuple[tuple[int, ...], ...]) -> None:
    """onnxruntime 1.31 ended the process when it loaded the last of these."""

    def model(matrices: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        i = 0
        while i < 3 and z.sum() < 9:
            d = torch.einsum("...o, ...io -> ...i", z, matrices)
            z = z + d.abs()
            matrices = matrices + torch.einsum("...i,...j->...ij", z, d)
            i += 1
        return z, matrices

    inputs = [tuple(map(torch.rand, shapes)), tuple(5 * torch.rand(shape) for shape in shapes)]
    assert dy2st.check(model, inputs).outcome == "equal"
