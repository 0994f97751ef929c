"""A GRU decoder over padded sequences of different lengths.

A cell runs over the time steps one by one. A sequence that has ended keeps its state, and its later rows are zero. Each
row of the result is written where it belongs: ``out[t] = ...``.

Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine Translation",
2014.

===============================  ============================================================
``for t in range(x.shape[0])``   1 ``Loop`` or ``Scan`` (carries ``h``; the rows of ``out`` are
                                 stacked by it)
===============================  ============================================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class GRUDecoder(nn.Module):
    """Token ids ``[time, batch]``, lengths and a context ``[batch, hidden]`` to logits and the last state."""

    def __init__(self, vocabulary: int = 12, embedding: int = 8, hidden: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.cell = nn.GRUCell(embedding, hidden)
        self.project = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: Tensor, lengths: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embedding(tokens)
        h = torch.tanh(context)
        out = x.new_zeros(x.shape[0], x.shape[1], h.shape[1])
        for t in range(x.shape[0]):
            alive = (t < lengths).unsqueeze(1)
            h = torch.where(alive, self.cell(x[t], h), h)
            out[t] = h * alive
        return self.project(out), h


torch.manual_seed(0)
model = GRUDecoder().eval()
_time, _batch = Dim("time"), Dim("batch")
dynamic_shapes = ({0: _time, 1: _batch}, {0: _batch}, {0: _batch})
control_flow = {"If": 0, "Loop": 1}


def example_inputs() -> list[tuple[Tensor, Tensor, Tensor]]:
    """Several lengths and batch sizes, a sequence of length zero, one time step, none."""
    generator = torch.Generator().manual_seed(1)

    def case(time: int, lengths: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        batch = len(lengths)
        tokens = torch.randint(0, 12, (time, batch), generator=generator)
        return tokens, torch.tensor(lengths), torch.randn(batch, 16, generator=generator)

    return [case(5, [5, 3, 4]), case(9, [2, 9]), case(3, [0, 3, 1, 2]), case(1, [1]), case(0, [0, 0])]
