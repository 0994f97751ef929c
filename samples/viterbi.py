"""Viterbi decoding of a linear-chain conditional random field.

Forward over the time steps, keeping the best predecessor of every tag; then back over the kept rows, following them.
Positions behind the end of a sequence leave scores as they are and point back to themselves.

Source: Lafferty, McCallum, Pereira, "Conditional Random Fields", 2001; Forney, "The Viterbi Algorithm", 1973.

==================================  ======================================================
``for t in range(1, length)``       1 ``Loop`` (appends a row of back pointers per step)
``for ... in reversed(history)``    1 ``Loop`` over those rows, from the last
==================================  ======================================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class CRFTagger(nn.Module):
    """Features ``[time, batch, inputs]`` and a mask ``[time, batch]`` to the best tags and their score."""

    def __init__(self, inputs: int = 4, tags: int = 5) -> None:
        super().__init__()
        self.emit = nn.Linear(inputs, tags)
        self.start, self.end = nn.Parameter(torch.randn(tags)), nn.Parameter(torch.randn(tags))
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def forward(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        emissions = self.emit(features)
        score = self.start + emissions[0]
        stay = torch.arange(emissions.shape[2])
        history = []
        for t in range(1, emissions.shape[0]):
            best, previous = (score[:, :, None] + self.transitions).max(1)
            here = mask[t][:, None]
            score = torch.where(here, best + emissions[t], score)
            history.append(torch.where(here, previous, stay))

        total, tag = (score + self.end).max(1)
        path = [tag]
        for previous in reversed(history):
            tag = previous.gather(1, tag[:, None])[:, 0]
            path.append(tag)
        return torch.stack(path).flip(0), total


torch.manual_seed(0)
model = CRFTagger().eval()
_time, _batch = Dim("time"), Dim("batch")
dynamic_shapes = ({0: _time, 1: _batch}, {0: _time, 1: _batch})
control_flow = {"If": 0, "Loop": 2}


def example_inputs() -> list[tuple[Tensor, Tensor]]:
    """Several lengths and batch sizes; a single time step runs neither loop."""
    generator = torch.Generator().manual_seed(1)

    def case(time: int, lengths: list[int]) -> tuple[Tensor, Tensor]:
        features = 2 * torch.randn(time, len(lengths), 4, generator=generator)
        return features, torch.arange(time)[:, None] < torch.tensor(lengths)

    return [case(6, [6, 3, 5]), case(1, [1, 1]), case(2, [2]), case(9, [9, 1, 4, 8]), case(4, [4])]
