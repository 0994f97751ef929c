"""``nn.GRU`` and ``nn.LSTM`` in a file: also where onnxruntime's operators lose NaN, or end the process."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import dy2st


class Recurrent(nn.Module):
    """A module with given states, and a branch behind it."""

    def __init__(self, kind: Any, **options: bool | int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = kind(3, 4, **options)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """The rows and the last hidden state."""
        given = (h, h * 0.3) if isinstance(self.inner, nn.LSTM) else h
        rows, last = self.inner(x, given)
        if rows.sum() > 0:
            rows = rows * 2
        return rows, last[0] if isinstance(last, tuple) else last


def inputs(dtype: torch.dtype, layers: int) -> list[tuple[Tensor, Tensor]]:
    """Ordinary numbers, one step, no batch; NaN and infinities in rows and states; numbers that overflow."""
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    found = [(drawn(steps, batch, 3), drawn(layers, batch, 4)) for steps, batch in ((5, 2), (1, 1), (3, 0))]
    for place, values in (((1, 0), [0.0, 1.0, torch.nan]), ((2, 1), [torch.inf, -torch.inf, 0.0])):
        x = drawn(4, 2, 3)
        x[place] = torch.tensor(values, dtype=dtype)
        found.append((x, drawn(layers, 2, 4)))
    h = drawn(layers, 2, 4)
    h[0, 1, 0] = torch.nan
    return [*found, (drawn(4, 2, 3), h), (drawn(6, 2, 3) * torch.finfo(dtype).max ** 0.75, drawn(layers, 2, 4))]


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (torch.float32, {"bidirectional": True, "num_layers": 2}),
        (torch.float32, {"bias": False}),
        (torch.float64, {}),
        (torch.float16, {}),
    ],
    ids=["two layers, both ways", "no bias", "double", "half"],
)
def test_numbers_and_what_is_none(kind: Any, dtype: torch.dtype, options: dict[str, bool | int]) -> None:
    model = Recurrent(kind, **options).to(dtype).eval()
    layers = model.inner.num_layers * (2 if model.inner.bidirectional else 1)
    batch = Dim("batch", min=0)
    shapes = ({0: Dim("steps"), 1: batch}, {1: batch})
    report = dy2st.check(model, inputs(dtype, layers), dynamic_shapes=shapes)
    assert report.ok, report.problems()
    assert not any("file" in line for line in report.uncovered)  # the file's own branch is none of the user's
