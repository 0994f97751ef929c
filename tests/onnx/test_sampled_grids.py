"""``grid_sample`` where a place is NaN, infinite or far away: each mode and padding as eager has it."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import dy2st

nan, inf = float("nan"), float("inf")
PLACES = torch.tensor(
    [
        *([0.0, 0.0, 0.0], [0.3, -0.9, 0.4], [5.0, 0.0, 0.0], [1e20, 0.0, 0.1], [-1e20, 0.1, 0.0]),
        *([nan, 0.3, 0.1], [0.2, nan, 0.1], [0.1, 0.1, nan], [inf, 0.0, 0.0], [-inf, 0.0, 0.0], [0.0, inf, 0.0]),
    ]
)
VOLUME = torch.arange(64.0).reshape(1, 1, 4, 4, 4) + 1
FORMS = list(itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)))


@pytest.mark.slow_for("bicubic-reflection-False")
@pytest.mark.parametrize(("mode", "padding", "aligned"), FORMS)
def test_wild_places(mode: str, padding: str, aligned: bool) -> None:
    image = VOLUME[:, :, 0]
    grid = PLACES[:, :2].reshape(1, 1, -1, 2)

    def in_image(x: Tensor, grid: Tensor) -> Tensor:
        return functional.grid_sample(x, grid, mode, padding, aligned)

    if padding == "reflection" and mode == "bicubic":
        grid = grid[:, :, [*range(3), *range(5, 11)]]  # reflected from so far away, a place is noise
    sets = [(image, grid), (image[:, :, :1, :1], grid[:, :, 5:]), (image[:, :, :3], grid[:, :, :3])]
    assert dy2st.check(in_image, sets).ok
    if mode == "bicubic":
        return

    def in_volume(x: Tensor, grid: Tensor) -> Tensor:
        return functional.grid_sample(x, grid, mode, padding, aligned)

    report = dy2st.check(in_volume, [(VOLUME, PLACES.reshape(1, 1, 1, -1, 3))])
    assert report.ok, str(report)


def test_a_constant_grid_is_sampled_at_once() -> None:
    grid = PLACES[:2, :2].reshape(1, 1, -1, 2)
    program = dy2st.onnx.export(lambda x: functional.grid_sample(x, grid, align_corners=False), (VOLUME[:, :, 0],))
    assert [node.op_type for node in program.model.graph if node.op_type != "Constant"] == ["GridSample"]
