"""``cummax`` and ``cummin``: values and places as eager has them, in as many steps as the length can be halved."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.parity.stages import OnnxSession

NAN, INF = math.nan, math.inf


class Running(torch.nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return *torch.cummax(x, self.dim), *torch.cummin(x, self.dim)


def computed(file: Path, dim: int, calls: list[Tensor], dims: dict[int, Dim]) -> None:
    """Compare with eager, without tolerance. (onnxruntime's ``Where`` makes 0.0 of -0.0.)"""
    model = Running(dim)
    dy2st.onnx.export(model, (calls[0],), file, dynamic_shapes=(dims,))
    session = OnnxSession(file)
    for x in calls:
        found = session.values({session.input_names[0]: x})
        for one, other in zip(found, model(x), strict=True):
            assert one.dtype is other.dtype
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


ROWS = [
    [],
    [1.0],
    [2.0, 1.0],
    [0.0, -0.0, 0.0, -0.0],
    [NAN, 1.0, 2.0],
    [1.0, NAN, 3.0, NAN, -INF, INF],
    [-INF, INF, INF, -INF, 0.0],
    [3.0, 3.0, 1.0, 3.0, 4.0, 4.0, 1.0, 1.0, 0.0],
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats(dtype: torch.dtype, tmp_path: Path) -> None:
    calls = [torch.tensor(row, dtype=dtype) for row in ROWS[::-1]]
    computed(tmp_path / "m.onnx", 0, calls, {0: Dim("n")})


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool])
def test_integers(dtype: torch.dtype, tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(0)
    calls = [torch.randint(0, 4, (n,), generator=rng).to(dtype) for n in (33, 32, 31, 7, 1, 0)]
    computed(tmp_path / "m.onnx", -1, calls, {0: Dim("n")})


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_along_each_dimension(dim: int, tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(dim)
    sizes = [(3, 5, 9), (1, 2, 1), (0, 2, 3), (2, 0, 3), (17, 1, 4)]
    calls = [torch.randint(-3, 4, size, generator=rng).float() for size in sizes]
    computed(tmp_path / "m.onnx", dim, calls, {0: Dim("a"), 1: Dim("b"), 2: Dim("c")})


def test_of_fixed_size(tmp_path: Path) -> None:
    for x in (torch.randn(6, 1), torch.tensor(2.5)):
        computed(tmp_path / "m.onnx", 0, [x], {})


def test_the_steps_are_few(tmp_path: Path) -> None:
    """A loop goes round once for each time that the length doubles."""

    def model(x: Tensor) -> Tensor:
        return torch.cummax(x, 0).values

    program = dy2st.onnx.export(model, (torch.ones(9),), dynamic_shapes=({0: Dim("n")},))
    (loop,) = [node for node in program.model.graph.all_nodes() if node.op_type == "Loop"]
    body = loop.attributes["body"].as_graph()
    assert loop.inputs[0] is None
    assert "Gather" not in [node.op_type for node in body]
    assert "Concat" in [node.op_type for node in body]
