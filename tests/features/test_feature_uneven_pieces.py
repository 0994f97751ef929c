"""Pieces of a tensor, as many as its size says, that are put together again: the last one may be shorter."""

from __future__ import annotations

import pytest
import torch
from harness import agree, refused, row
from torch import Tensor, nn
from torch.export import Dim

import dy2st
from dy2st.errors import Dy2stError

DYNAMIC = ({0: Dim("n", min=2, max=4096)},)


def rows(*sizes: int) -> list[tuple[Tensor]]:
    """Matrices of three columns."""
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(size, 3, generator=generator),) for size in sizes]


class Normalised(nn.Module):
    """Normalises a batch in parts of four rows."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        parts = x.chunk(-(-x.shape[0] // 4), 0)
        return torch.cat([part - part.mean(0) for part in parts], dim=0)


class Carried(nn.Module):
    """Goes on with what the part before has left."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = torch.zeros(3)

    def norm(self, part: Tensor) -> Tensor:
        """A part by all rows so far."""
        self.seen = self.seen + part.sum(0)
        return part / (1 + self.seen.abs())

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        self.seen = torch.zeros(3)
        return torch.cat([self.norm(part) for part in x.split(4)], -2)


class InALoop(nn.Module):
    """The same in a loop that appends."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        made = []
        for part in x.split(4):
            made.append(part - part.amax(0))  # noqa: PERF401  a loop is what this is about
        return torch.cat(made)


@row(24, 32, 48)
@pytest.mark.parametrize("model", [Normalised, Carried, InALoop])
def test_pieces_are_put_together_again(model: type[nn.Module]) -> None:
    agree(model(), rows(8, 5, 12, 3, 9, 2), DYNAMIC, paths=1)


@row(48)
def test_pieces_whose_number_is_data_are_refused() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        return torch.cat([part - part.mean(0) for part in x.chunk(int(n))])

    def other_dimension(x: Tensor) -> Tensor:
        return torch.cat([part - part.mean(0) for part in x.split(4)], 1)

    with refused(Dy2stError, match="D2S244|chunk"):
        dy2st.export(model, (rows(12)[0][0], torch.tensor(3)))
    with refused(Dy2stError, match="pad them to one size"):
        dy2st.export(other_dimension, rows(9)[0], dynamic_shapes=DYNAMIC)
